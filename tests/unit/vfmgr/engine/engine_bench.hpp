// SPDX-License-Identifier: Apache-2.0
// An engine on fakes with a store on disk, driven as the service drives it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/fakes/fake_kernel.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr::example {

inline char const* const vm1 = "11111111-1111-1111-1111-111111111111";
inline char const* const vm2 = "22222222-2222-2222-2222-222222222222";
inline PciAddress const pf0{0, 1, 0, 0};
inline PciAddress const pf1{0, 2, 0, 0};

using TemporaryFolder = test::TemporaryFolder;

inline Network train() {
    Network network;
    network.name = "train";
    network.vlan = 100;
    network.prefix = IpPrefix::parse("192.168.100.0/24").value();
    network.mtu = 9000;
    network.rdma = RdmaMode::rxe;
    network.pfs = {{pf0, IpAddress::parse("192.168.100.3").value()},
                   {pf1, IpAddress::parse("192.168.100.4").value()}};
    return network;
}

inline PfSpec spec_with_vfs(std::uint16_t count) {
    return {PfMode::manage, count};
}

inline AttachmentSpec ask(char const* vm = "vm1") {
    AttachmentSpec spec;
    spec.vm = vm;
    spec.pf = pf0;
    spec.network = "train";
    spec.settings.trust = true;
    return spec;
}

constexpr std::uint32_t holders_uid = 64055;
inline AttachmentSpec ask_external() {
    auto spec = ask("");
    spec.holder = ExternalHolder{HolderKind::external, "qm-104", holders_uid};
    return spec;
}
inline HostBounds bounds_for_holders() {
    HostBounds bounds;
    bounds.external_holders = {true, {{holders_uid, holders_uid}}};
    return bounds;
}

// For a comparison with a readable difference.
inline std::string text(KernelView const& view) {
    std::string all;
    for (auto const& [pci, pf] : view.pfs) all += nlohmann::json(pf).dump(1) + "\n";
    for (auto const& route : view.routes) all += nlohmann::json(route).dump() + "\n";
    if (view.network) all += nlohmann::json(*view.network).dump(1) + "\n";
    return all;
}

inline KernelView igb_host() {
    KernelView view;
    view.pfs[pf0] = make_igb_pf("0000:01:00.0", "enp1s0");
    return view;
}

// A new store has network train: an admin made it earlier.
inline std::unique_ptr<Control> open_control(std::filesystem::path const& folder,
                                             Clock const& clock = system_clock()) {
    auto store = Store::open((folder / "vfmgr.db").string()).value();
    Batch earlier;
    earlier.save_networks = {{train(), 0}};  // later revisions count from 1
    if (store.load().value() == DesiredState{}) {
        EXPECT_TRUE(store.commit(earlier));
    }
    return Control::start(std::move(store), clock).value();
}

// `kernel` and `hypervisor` are what the engine uses: the fakes, or wrappers around them.
class Bench {
  public:
    Bench(Kernel& kernel, Hypervisor& hypervisor, std::filesystem::path const& folder,
          AskResponder ask_responder = {}, Clock& clock = system_clock(),
          TrustedNetdevs trusted_netdevs = {}, FindOwners find_owners = {}, HostBounds bounds = {})
        : engine(kernel, hypervisor, open_control(folder, clock), clock, std::move(ask_responder),
                 std::move(trusted_netdevs), std::move(find_owners), std::move(bounds)) {
        recovered = engine.recover().has_value();
        engine.control().watch(Deadline::max(), [this](Control::State& state, Watch) {
            auto const left = state.store.unfinished();
            if (left && !left->empty()) return false;
            all_recovered_.set_value();
            return true;
        });
        all_recovered_.get_future().get();
    }

    Engine engine;
    bool recovered = false;

    Result<Answer> submit(Command command, Intent intent = {}) {
        std::promise<Result<Answer>> promise;
        auto future = promise.get_future();
        engine.submit(std::move(command), std::move(intent),
                      [&](Result<Answer> answer) { promise.set_value(std::move(answer)); });
        return future.get();
    }
    // Submits the command and waits for the operation's end.
    Operation run(Command command) {
        auto const answer = submit(std::move(command));
        if (!answer) return refused(answer.error());
        if (!answer->operation) return {};
        return ended(answer->operation->id);
    }
    Operation ended(std::string const& id) {
        std::promise<Operation> promise;
        auto future = promise.get_future();
        engine.control().watch(Deadline::max(), [&promise, id](Control::State& state, Watch) {
            auto const operation = state.store.operation(id).value();
            if (!operation || !finished(*operation)) return false;
            promise.set_value(*operation);
            return true;
        });
        return future.get();
    }
    // Answers the next run of any attachment, as the guest plane would.
    void guest_reports(Verdict verdict, std::map<std::string, double> const& figures = {}) {
        engine.control().watch(Deadline::max(), [=, this](Control::State& state, Watch) {
            if (state.runs().empty()) return false;
            Verification report;
            report.attachment = state.runs().begin()->first;
            report.run = state.runs().begin()->second.run;
            report.verdict = verdict;
            report.tests = {
                {"rdma_write", verdict, Judge::host, 1 << 20, 0, figures, "bytes differ", ""}};
            engine.runs().verification_done(std::move(report));
            return true;
        });
    }
    [[nodiscard]] DesiredState desired() const { return *engine.snapshot().desired; }

  private:
    std::promise<void> all_recovered_;
    static Operation refused(Error const& error) {
        Operation operation;
        operation.state = OperationState::failed;
        operation.problem = error;
        return operation;
    }
};

// Waits until `looks` more observations have begun: all but the last are processed then.
inline void have_looked(Engine& engine, FakeKernel const& kernel, std::size_t looks = 3) {
    for (auto const end = kernel.observed() + looks; kernel.observed() < end;) {
        engine.observe_again();
        std::this_thread::yield();
    }
}

// Returns when an observation that began now has been judged: a refused command is tried again
// after one. Does not wait for the pause between observations, whatever a fake clock makes of it.
inline void observe_anew(Bench& bench) {
    EXPECT_FALSE(bench.submit(Detach{"00000000"}));
}

// Observes the host again and again until `over` holds. Gives up after so many observations that
// nothing more can come, and shows what happened last.
inline void observe_until(Bench& bench, std::function<bool()> const& over) {
    constexpr int looks_max = 10'000;
    for (int looks = 0; looks < looks_max && !over(); ++looks) observe_anew(bench);
    if (over()) return;
    constexpr std::uint64_t shown = 40;
    auto const page = bench.engine.control().wait([](Control::State& state) {
        auto const last = state.store.last_event().value();
        return state.store.events_after(last < shown ? 0 : last - shown, shown).value();
    });
    std::string happened;
    for (auto const& event : page.events) happened += "\n" + event.detail;
    ADD_FAILURE() << looks_max << " observations were not enough; the last events are" << happened;
}

}  // namespace vfmgr::example
