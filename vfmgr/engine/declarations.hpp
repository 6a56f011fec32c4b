// SPDX-License-Identifier: Apache-2.0
// Attaches the VFs that a VM declares in its XML, once for each start of the VM. They end with it:
// see Endings. Whatever is refused, the VM runs on. Owned by the engine; control thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/operations.hpp"

namespace vfmgr {

class Declarations : public EnginePart {
  public:
    // Requests it as the VM, under its tenant's limits.
    using Submit = std::function<void(Attach, std::string const& vm_uuid, Reply)>;

    Declarations(Operations& operations, Submit submit)
        : EnginePart(operations), submit_(std::move(submit)) {}

    // Call it after each observation.
    void attach_declared(Control::State& state);

  private:
    void attach(Control::State& state, VmInfo const& vm);
    void report_refused(Control::State& state, VmInfo const& vm, std::string why);

    Submit const submit_;
    std::map<std::string, std::int32_t> served_;  // the start that a VM's declaration was read for
};

}  // namespace vfmgr
