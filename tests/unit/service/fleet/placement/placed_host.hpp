// SPDX-License-Identifier: Apache-2.0
// A host as a replica knows it, for tests of placement.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "service/fleet/records.hpp"
#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet::tests {

// Of VFs as {bus, index}.
inline std::string reservation_text(std::string const& name,
                                    std::vector<std::pair<int, int>> const& vfs) {
    std::vector<std::string> texts;
    for (auto const& [bus, index] : vfs)
        texts.push_back(fmt::format(R"({{"pf":"{}","index":{}}})", pci_text(bus), index));
    return fmt::format(R"({{"name":"{}","spec":{{"network":"blue"}},"tenant":null,"vfs":[{}],)"
                       R"("expires_at":"2026-01-31T12:15:00.000Z"}})",
                       name, joined(texts));
}

// Everything of it was read, and there is nothing.
struct PlacedHost {
    HostPart part;
    HostRecord record;

    explicit PlacedHost(std::string name) {
        part.host.name = std::move(name);
        record.state = FleetHostState::active;
        for (auto const collection :
             {Collection::pfs, Collection::vms, Collection::attachments, Collection::networks,
              Collection::pools, Collection::reservations})
            put(collection, {});
    }
    void put(Collection collection, std::vector<std::string> items) {
        put_list(part.documents, collection, std::move(items), {}, at(1));
    }
};

}  // namespace vfmgr::fleet::tests
