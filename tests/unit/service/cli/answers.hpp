// SPDX-License-Identifier: Apache-2.0
// Answers of the API, as values of its types. For tests only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/types/operation.hpp"
#include "api/types/pf_state.hpp"

namespace vfmgr::test {

inline PfView pf(std::string const& pci, std::string ifname) {
    PfView view;
    view.pf.info.pci = PciAddress::parse(pci).value();
    view.pf.info.ifname = std::move(ifname);
    return view;
}

inline Attachment attachment(std::string id, std::string vm, std::string vm_uuid = "u") {
    Attachment value;
    value.id = std::move(id);
    value.vm = std::move(vm);
    value.vm_uuid = std::move(vm_uuid);
    return value;
}

inline Operation operation(OperationState state, std::vector<OperationStep> steps = {}) {
    Operation value;
    value.id = "op1";
    value.state = state;
    value.steps = std::move(steps);
    return value;
}

template <class T>
nlohmann::json list(std::vector<T> const& items) {
    return {{"items", items}, {"next", nullptr}};
}

}  // namespace vfmgr::test
