// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/identities.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {

void keep_identity(Batch& batch, KernelView const& host, DesiredState const& desired,
                   PciAddress const& pf) {
    if (auto identity = identity_to_keep(host, desired, pf))
        batch.save_identities.emplace_back(pf, std::move(*identity));
}

// A store of an earlier form has no identities. The first observation stores what is at the
// address.
void Pfs::learn_identities(Control::State& state) {
    auto const host = seams().control.snapshot().host;
    auto const& desired = state.desired();
    auto const kept = kept_pfs(desired);
    Batch batch;
    for (auto const& pf : kept) keep_identity(batch, host->kernel, desired, pf);
    for (auto const& [pf, identity] : desired.identities)
        if (!std::ranges::binary_search(kept, pf)) batch.erase_identities.push_back(pf);
    // If the store can't be written, the next observation finds the same.
    if (!batch.save_identities.empty() || !batch.erase_identities.empty())
        static_cast<void>(state.commit(std::move(batch)).has_value());
}

namespace {

// Of a kernel's step alone: a VM loses its device whatever the PF has become.
std::optional<PciAddress> changed_pf(Step const& step) {
    auto const* const kernels = std::get_if<KernelStep>(&step);
    if (!kernels) return std::nullopt;
    auto const subject = subject_of(*kernels);
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return pf ? std::optional(*pf) : std::nullopt;
}

}  // namespace

std::vector<std::string> take_out_others(std::vector<JournalRecord>& records, HostView const& host,
                                         DesiredState const& desired) {
    std::vector<std::string> left;
    std::erase_if(records, [&](JournalRecord const& record) {
        auto const pf = changed_pf(record.step);
        auto const same = pf ? require_same_pf(host, desired, *pf) : Result<void>();
        if (same) return false;
        if (record.state != StepState::undone)
            left.push_back(
                fmt::format("did not undo \"{}\": {}", sentence(record.step), same.error().detail));
        return true;
    });
    return left;
}

}  // namespace vfmgr
