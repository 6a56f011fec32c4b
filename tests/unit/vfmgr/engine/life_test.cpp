// SPDX-License-Identifier: Apache-2.0
// The life of a host: users attach and detach, guests keep VFs, VMs come and go, libvirt fails,
// steps fail, vfmgrd is killed. After each act every VF is attached, free, or in quarantine.
//
// VFMGR_LIFE_ACTS and VFMGR_LIFE_SEED repeat or lengthen a run; `tests/run --long` makes a million.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/crash_bench.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;

std::uint64_t number_of_environment(char const* name, std::uint64_t otherwise) {
    auto const* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

constexpr std::uint16_t vfs_of_life = 7;
// One host's: a store grows with its life, and each restart of vfmgrd checks it whole.
constexpr std::uint64_t acts_of_life = 5'000;
constexpr std::size_t restart_every = 200;  // acts; the fakes' records of steps start anew
std::array const uuids{vm1, vm2, "33333333-3333-3333-3333-333333333333"};

std::string name_of(std::size_t vm, char const* more = "") {
    return fmt::format("vm{}{}", vm + 1, more);
}

VmInfo new_vm(std::size_t number) {
    auto vm = make_vm(name_of(number), uuids.at(number));
    vm.state = VmState::shut_off;
    vm.start_id.reset();
    vm.vsock_cid.reset();
    vm.free_pcie_ports = 32;
    return vm;
}

// What a VM has of one attachment, beside what the attachment says. Empty: the same.
std::string fault_in_vm(HostView const& host, Attachment const& attachment) {
    auto const found = host.hypervisor.vms.find(attachment.vm_uuid);
    if (found == host.hypervisor.vms.end()) return "an attached VF's VM is gone";
    auto const& vm = found->second;
    VmHostdev const device{attachment.vf_pci, hostdev_alias(attachment.id)};
    bool const in_config = std::ranges::count(vm.config, device) == 1;
    bool const in_live = std::ranges::count(vm.live, device) == 1;
    if (vm.state == VmState::running && !in_live) return "a running VM has not got its VF";
    if (attachment.config != in_config)
        return fmt::format("attachment {} of VM {} is {}in its XML, and recorded as {}in it",
                           attachment.id, vm.name, in_config ? "" : "not ",
                           attachment.config ? "" : "not ");
    return {};
}

std::string fault_of_life(HostView const& host, DesiredState const& desired) {
    std::set<VfId> taken;
    std::set<MacAddress> macs;
    for (auto const& [id, one] : desired.attachments) {
        if (!taken.insert(one.vf).second) return "a VF has two attachments";
        if (one.settings.mac && !macs.insert(*one.settings.mac).second)
            return "a MAC has two attachments";
        if (one.state == AttachmentState::attaching) return "an attachment is left half done";
        if (one.state == AttachmentState::detaching) continue;
        if (auto fault = fault_of_attached_vf(host, one); !fault.empty()) return fault;
        if (auto fault = fault_in_vm(host, one); !fault.empty()) return fault;
    }
    return fault_of_the_rest(host, desired);
}

class Life {
  public:
    explicit Life(std::uint64_t seed) : random_(seed) { boot(igb_host(), {}); }

    // Returns what is wrong after it; empty: nothing.
    std::string act() {
        using Act = bool (Life::*)();
        struct Kind {
            char const* name;
            Act act;
        };
        static constexpr std::array kinds{
            Kind{"attach", &Life::attach},
            Kind{"attach", &Life::attach},
            Kind{"attach a set", &Life::attach_set},
            Kind{"change", &Life::change},
            Kind{"detach", &Life::detach},
            Kind{"detach a set", &Life::detach_set},
            Kind{"start", &Life::start},
            Kind{"start", &Life::start},
            Kind{"destroy", &Life::destroy},
            Kind{"rename", &Life::rename},
            Kind{"undefine", &Life::undefine},
            Kind{"keep", &Life::keep},
            Kind{"libvirtd away", &Life::libvirtd_away},
            Kind{"a step fails", &Life::a_step_fails},
            Kind{"lift", &Life::lift},
            Kind{"vfmgrd killed", &Life::restart},
        };
        if (++acts_ % restart_every == 0) restart();
        auto const& kind = kinds.at(any(kinds.size()));
        last_ = kind.name;
        auto& [tried, done] = counts_[kind.name];
        ++tried;
        if ((this->*kind.act)()) ++done;
        return fault_of_life(host(), bench_->desired());
    }

    // Brings the host to rest: every VM starts, and what guests kept is released.
    std::string end() {
        for (std::size_t vm = 0; vm < uuids.size(); ++vm) {
            hypervisor_->stop(uuids.at(vm));
            if (!host().hypervisor.vms.contains(uuids.at(vm))) hypervisor_->add(new_vm(vm));
        }
        observe_for_long([&] { return none_detaching(); });
        while (!bench_->desired().quarantine.empty())
            if (!lift()) return "a quarantine is not lifted";
        for (auto const* uuid : uuids)
            if (!hypervisor_->start(uuid)) return "a VM does not start";
        observe_anew(*bench_);
        if (auto fault = fault_of_life(host(), bench_->desired()); !fault.empty()) return fault;
        for (auto const& id : ids())
            if (bench_->run(Detach{id}).state != OperationState::succeeded)
                return "an attachment does not end";
        return fault_of(host(), bench_->desired(), true);
    }

    [[nodiscard]] std::string last() const { return last_; }
    [[nodiscard]] std::map<std::string, std::pair<int, int>> const& counts() const {
        return counts_;
    }

  private:
    std::size_t any(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    [[nodiscard]] HostView host() const { return {kernel_->view(), hypervisor_->view()}; }
    [[nodiscard]] std::vector<std::string> ids() const {
        std::vector<std::string> all;
        for (auto const& [id, one] : bench_->desired().attachments) all.push_back(id);
        return all;
    }
    [[nodiscard]] bool none_detaching() const {
        return std::ranges::none_of(bench_->desired().attachments, [](auto const& entry) {
            return entry.second.state == AttachmentState::detaching;
        });
    }
    bool succeeds(Command command) {
        return bench_->run(std::move(command)).state == OperationState::succeeded;
    }

    void boot(KernelView kernel, std::optional<HypervisorView> const& libvirt) {
        bench_.reset();
        hypervisor_.reset();
        kernel_.emplace(std::move(kernel));
        hypervisor_.emplace(*kernel_);
        if (libvirt) hypervisor_->change([&](HypervisorView& view) { view = *libvirt; });
        for (std::size_t vm = 0; !libvirt && vm < uuids.size(); ++vm) hypervisor_->add(new_vm(vm));
        bench_.emplace(*kernel_, *hypervisor_, folder_.path(), AskResponder{}, clock_);
        if (!libvirt) bench_->run(ReplacePfSpec{pf0, spec_with_vfs(vfs_of_life)});
        bench_->engine.start_observing();
        observe_anew(*bench_);
    }

    // --- users ---

    AttachmentSpec request() {
        auto spec = ask("");
        spec.vm = uuids.at(any(uuids.size()));
        return spec;
    }
    bool attach() { return succeeds(Attach{request()}); }
    bool attach_set() {
        auto const spec = request();
        return succeeds(Attach{std::vector(2 + any(2), spec)});
    }
    bool change() {
        auto const all = ids();
        if (all.empty()) return false;
        AttachmentPatch patch;
        patch.settings.set.trust = any(2) == 0;
        return succeeds(ChangeAttachment{all.at(any(all.size())), patch});
    }
    bool detach() {
        auto const all = ids();
        return !all.empty() && succeeds(Detach{all.at(any(all.size()))});
    }
    bool detach_set() {
        auto all = ids();
        if (all.size() < 2) return false;
        all.resize(2);
        return succeeds(Detach{all});
    }
    bool lift() {
        auto const quarantine = bench_->desired().quarantine;
        return !quarantine.empty() && succeeds(LiftQuarantine{quarantine.begin()->first});
    }

    // --- VMs ---

    bool start() {
        auto const* uuid = uuids.at(any(uuids.size()));
        return host().hypervisor.vms.contains(uuid) && hypervisor_->start(uuid) && observed();
    }
    bool destroy() {
        auto const* uuid = uuids.at(any(uuids.size()));
        hypervisor_->stop(uuid);
        return observed();
    }
    bool rename() {
        auto const number = any(uuids.size());
        hypervisor_->change([&](HypervisorView& view) {
            auto const vm = view.vms.find(uuids.at(number));
            if (vm != view.vms.end()) vm->second.name = name_of(number, any(2) == 0 ? "" : "-new");
        });
        return observed();
    }
    // It comes back without its devices.
    bool undefine() {
        auto const number = any(uuids.size());
        auto const* uuid = uuids.at(number);
        hypervisor_->stop(uuid);
        hypervisor_->change([&](HypervisorView& view) { view.vms.erase(uuid); });
        observe_anew(*bench_);
        clock_.advance(vm_unknown_max + 1s);
        observe_for_long([&] {
            return std::ranges::none_of(bench_->desired().attachments, [&](auto const& entry) {
                return entry.second.vm_uuid == uuid;
            });
        });
        hypervisor_->add(new_vm(number));
        return observed();
    }
    bool observed() {
        observe_anew(*bench_);
        return true;
    }
    // A detach that failed amid an act before is begun again after a while only.
    void observe_for_long(std::function<bool()> const& over) {
        observe_until(*bench_, [&] {
            clock_.advance(1s);
            return over();
        });
    }

    // --- trouble ---

    bool keep() {
        hypervisor_->detach = any(2) == 0 ? DetachBehaviour::times_out : DetachBehaviour::not_done;
        bool const kept = !detach() && !none_detaching();
        hypervisor_->detach = DetachBehaviour::works;
        return kept;
    }
    bool libvirtd_away() {
        hypervisor_->observe_error = Error{Problem::unavailable, "no libvirt", "start it"};
        bool const refused = !attach();
        hypervisor_->observe_error.reset();
        return refused;
    }
    bool a_step_fails() {
        auto const point = static_cast<FaultPoint>(any(3));
        auto const later = any(6);
        if (any(2) == 0)
            kernel_->fail_at = Fault{kernel_->performed() + later, point};
        else
            hypervisor_->fail_at = Fault{hypervisor_->performed() + later % 2, point};
        bool const failed = any(2) == 0 ? !attach() : !detach();
        kernel_->fail_at.reset();
        hypervisor_->fail_at.reset();
        return failed;
    }
    // Between operations: crash_test.cpp has the points amid them.
    bool restart() {
        bench_.reset();
        boot(kernel_->view(), hypervisor_->view());
        return true;
    }

    std::mt19937_64 random_;
    TemporaryFolder folder_;
    FakeClock clock_;
    std::optional<FakeKernel> kernel_;
    std::optional<FakeHypervisor> hypervisor_;
    std::optional<Bench> bench_;
    std::size_t acts_ = 0;
    std::string last_;
    std::map<std::string, std::pair<int, int>> counts_;  // of each kind: tried, done
};

TEST(LifeTest, WhateverHappensEachVfIsAttachedFreeOrInQuarantine) {
    auto const acts = number_of_environment("VFMGR_LIFE_ACTS", 400);
    auto const seed = number_of_environment("VFMGR_LIFE_SEED", std::random_device{}());
    std::cout << fmt::format("[  life    ] VFMGR_LIFE_SEED={} VFMGR_LIFE_ACTS={}\n", seed, acts);
    std::map<std::string, std::pair<int, int>> counts;
    for (std::uint64_t begun = 0; begun < acts; begun += acts_of_life) {
        Life life(seed + begun);
        for (auto act = begun; act < std::min(acts, begun + acts_of_life); ++act) {
            auto const fault = life.act();
            ASSERT_EQ(fault, "") << "after act " << act << ", " << life.last() << ", seed " << seed;
        }
        ASSERT_EQ(life.end(), "") << "seed " << seed;
        for (auto const& [kind, count] : life.counts()) {
            counts[kind].first += count.first;
            counts[kind].second += count.second;
        }
    }
    int tried = 0;
    int done = 0;
    for (auto const& [kind, count] : counts) {
        std::cout << fmt::format("[  life    ] {}: {} of {} done\n", kind, count.second,
                                 count.first);
        tried += count.first;
        done += count.second;
        EXPECT_GE(static_cast<std::uint64_t>(count.second), acts / 150) << kind;
    }
    EXPECT_GE(done * 10, tried * 6) << "too few acts do what they are to do";
}

}  // namespace
}  // namespace vfmgr
