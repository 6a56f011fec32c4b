// SPDX-License-Identifier: Apache-2.0
// Shared by the properties of plans: who uses a VF, what a step touches, when two hosts are equal,
// and how often a case was drawn. Written independently of vfmgr/plan, which it judges.
#pragma once

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/unit/vfmgr/plan/random_host.hpp"

namespace vfmgr::drawn {

// Counts drawn cases: a property that meets only refusals can't fail. Printed, and asserted.
class Tally {
  public:
    Tally() = default;
    Tally(Tally const&) = delete;
    Tally& operator=(Tally const&) = delete;
    void count(std::string const& what, bool counts = true) { counts_[what] += counts ? 1 : 0; }
    ~Tally() {
        std::string line;
        for (auto const& [what, number] : counts_)
            line += fmt::format("{}{} {}", line.empty() ? "" : ", ", number, what);
        std::cout << "[  drawn   ] " << line << "\n";
        testing::Test::RecordProperty("drawn", line);
    }
    void expect_at_least(int least, std::vector<std::string> const& all) {
        for (auto const& what : all) EXPECT_GE(counts_[what], least) << what;
    }

  private:
    std::map<std::string, int> counts_;
};

// In use by any user but the attachment `own`. The VM that runs with the VF is its holder.
inline bool in_use(World const& world, VfId const& id, Attachment const* own = nullptr) {
    auto const* vf = find_vf(world.view, id);
    if (!vf) return false;
    bool own_vm_runs_with_it = false;
    for (auto const& [uuid, vm] : world.view.hypervisor.vms) {
        auto const names = [&](VmHostdev const& device) { return device.pci == vf->pci; };
        bool const mine = own && uuid == own->vm_uuid;
        bool const live = std::ranges::any_of(vm.live, names);
        if (!mine && (live || std::ranges::any_of(vm.config, names))) return true;
        own_vm_runs_with_it = own_vm_runs_with_it || (mine && live);
    }
    if (!vf->holders.empty() && !own_vm_runs_with_it) return true;
    if (!own && world.desired.quarantine.contains(id)) return true;
    return std::ranges::any_of(world.desired.attachments, [&](auto const& attachment) {
        return attachment.second.vf == id && (!own || attachment.first != own->id);
    });
}

// Returns the VFs whose owner would notice the step.
inline std::vector<VfId> touched(World const& world, Step const& step) {
    std::vector<VfId> vfs;
    if (auto const* count = as<SetNumVfs>(step)) {
        auto const& pf = *find_pf(world.view, count->pf);
        for (auto const& vf : pf.vfs)
            if (count->count != pf.info.num_vfs) vfs.push_back({count->pf, vf.index});
    } else if (auto const* all = as<ConfigureVfs>(step)) {
        for (auto const& change : all->changes) vfs.push_back({all->pf, change.index});
    } else if (auto const* bind = as<BindVfs>(step)) {
        for (auto const index : bind->vfs)
            if (find_vf(world.view, VfId{bind->pf, index})) vfs.push_back({bind->pf, index});
    } else {
        visit_step(
            [&](auto const& one) {
                if constexpr (requires { one.vf; }) vfs.push_back(one.vf);
            },
            step);
    }
    return vfs;
}

inline void expect_touches_nobody_else(World const& world, Plan const& plan,
                                       Attachment const* own = nullptr) {
    for (auto const& step : plan.steps)
        for (auto const& vf : touched(world, step))
            if (in_use(world, vf, own)) RC_FAIL("used by somebody else: " + sentence(step));
}

inline void expect_says_why(Error const& error) {
    RC_LOG() << "refused: " << error.detail << "\n";
    RC_ASSERT_FALSE(error.detail.empty());
    RC_ASSERT_FALSE(error.remedy.empty());
}

// A driver that refuses the zero MAC uses a substitute for none.
inline HostView without_stand_ins(HostView view) {
    for (auto& [pci, pf] : view.kernel.pfs)
        for (auto& vf : pf.vfs)
            if (vf.settings.mac == mac_for_none) vf.settings.mac = MacAddress{};
    return view;
}

// Sorts lists whose order carries no meaning.
inline HostView in_order(HostView const& host) {
    auto view = without_stand_ins(host);
    auto const by_text = [](auto& list) {
        std::ranges::sort(list, {}, [](auto const& one) { return to_string(one); });
    };
    for (auto& [pci, pf] : view.kernel.pfs) {
        std::ranges::sort(pf.interfaces, {}, &HostInterface::id);
        for (auto& interface : pf.interfaces) {
            by_text(interface.prefixes);
            by_text(interface.addresses);
            by_text(interface.filtered);
            std::ranges::sort(interface.peers, {}, &PeerEntry::address);
            std::ranges::sort(interface.closed, {}, &ClosedVm::address);
        }
        for (auto& vf : pf.vfs) std::ranges::sort(vf.holders, {}, &VfioHolder::pid);
    }
    auto& routes = view.kernel.routes;
    std::ranges::sort(routes, {}, [](HostRoute const& route) {
        return route.ifname + " " + to_string(route.prefix);
    });
    for (auto& [uuid, vm] : view.hypervisor.vms)
        for (auto* devices : {&vm.live, &vm.config})
            std::ranges::sort(*devices, {}, &VmHostdev::pci);
    return view;
}

inline std::string text(HostView const& view) {
    nlohmann::json all;
    for (auto const& [pci, pf] : view.kernel.pfs) all[to_string(pci)] = pf;
    for (auto const& route : view.kernel.routes) all["routes"].push_back(route);
    for (auto const& [uuid, vm] : view.hypervisor.vms) all["vms"].push_back(vm);
    return all.dump(1);
}

// Compares lines of `left` and `right` by position: enough to show the difference.
inline void expect_same(HostView const& left, HostView const& right, std::string const& when) {
    auto const one = in_order(left);
    auto const other = in_order(right);
    if (one == other) return;
    auto const first = nlohmann::json::parse(text(one));
    auto const second = nlohmann::json::parse(text(other));
    RC_LOG() << nlohmann::json::diff(first, second).dump(1) << "\n";
    RC_FAIL("not the same host " + when);
}

inline void log(Plan const& plan) {
    for (auto const& step : plan.steps) RC_LOG() << sentence(step) << "\n";
    for (auto const& note : plan.notes) RC_LOG() << "note: " << note << "\n";
}

// Performs the plan of an attach and returns what its steps remarked. It is not known in advance
// what a driver accepts: after a refusal all is undone, the host is as before, and nothing is
// returned.
inline std::optional<std::vector<std::string>> performed_or_undone(World const& world, Fakes& fakes,
                                                                   Plan const& plan, Tally& tally) {
    std::vector<Step> undo;
    std::vector<std::string> remarks;
    for (auto const& step : plan.steps) {
        auto const back = inverse(step, fakes.view());
        undo.insert(undo.begin(), back.begin(), back.end());
        auto const done = fakes.perform(step);
        if (done) {
            remarks.insert(remarks.end(), done->remarks.begin(), done->remarks.end());
            continue;
        }
        RC_ASSERT(done.error().problem == Problem::kernel_refused);
        tally.count("refused by the driver");
        for (auto const& one : undo) RC_ASSERT(fakes.perform(one).has_value());
        expect_same(world.view, fakes.view(), "after a refusal was undone");
        return std::nullopt;
    }
    return remarks;
}

}  // namespace vfmgr::drawn
