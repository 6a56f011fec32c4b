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
    if (auto const* const of_vm = std::get_if<HypervisorStep>(&step))
        return std::visit([](auto const& one) { return one.vf.pf; }, *of_vm);
    auto const* const of_kernel = std::get_if<KernelStep>(&step);
    if (of_kernel == nullptr) return std::nullopt;
    auto const subject = subject_of(*of_kernel);
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return pf ? std::optional(*pf) : std::nullopt;
}

}  // namespace vfmgr
