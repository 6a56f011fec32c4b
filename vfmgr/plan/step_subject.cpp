// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/step_subject.hpp"

namespace vfmgr {

StepSubject subject_of(Step const& step) {
    if (auto const* const of_kernel = std::get_if<KernelStep>(&step)) return subject_of(*of_kernel);
    if (auto const* const of_vm = std::get_if<HypervisorStep>(&step))
        return std::visit([](auto const& one) { return one.vm_uuid; }, *of_vm);
    return {};
}

std::optional<PciAddress> pf_of(Step const& step) {
    auto const pf_in = [](auto const& one) -> std::optional<PciAddress> {
        if constexpr (requires { one.vf; })
            return one.vf.pf;
        else if constexpr (requires { one.interface; })
            return one.interface.pf;
        else if constexpr (requires { one.pf; })
            return one.pf;
        else
            return std::nullopt;
    };
    return visit_step(pf_in, step);
}

}  // namespace vfmgr
