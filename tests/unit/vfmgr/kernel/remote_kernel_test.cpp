// SPDX-License-Identifier: Apache-2.0
// Workers are threads here, each with a fake kernel behind its socket; "killed" is a worker that
// the test ends, as the kernel ends a real one.
#include "vfmgr/kernel/remote_kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>

#include "tests/fakes/fake_kernel.hpp"
#include "tests/unit/vfmgr/netlink/network_namespace.hpp"
#include "vfmgr/kernel/worker.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using test::soon;
using testing::HasSubstr;

PciAddress const pf0{0, 1, 0, 0};
PciAddress const pf1{0, 2, 0, 0};

// Opens once, for good. Declare it before the Host, whose workers may still wait for it at its end.
class Gate {
  public:
    void open() {
        std::lock_guard const lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    void pass() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

struct Host {
    FakeKernel fake;
    std::mutex mutex;  // guards the list of started workers: PFs are observed at once
    RemoteKernelTimes times;
    std::vector<PciAddress> pfs{pf0, pf1};
    std::map<KernelSubject, int> started;
    std::map<KernelSubject, int> kills;
    bool dies_when_killed = true;
    bool has_predecessor = false;                     // pf0
    Gate predecessor;                                 // its end
    std::vector<std::pair<KernelSubject, int>> ends;  // the workers' ends of their sockets
    std::vector<std::thread> workers;
    std::unique_ptr<RemoteKernel> kernel;

    explicit Host(RemoteKernelTimes given = {300ms, 100ms, 100ms, 0ms})
        : fake(two_pfs()), times(given) {
        kernel = std::make_unique<RemoteKernel>(
            [this](KernelScope const& scope) { return pfs_in(scope); },
            [] { return Result<std::vector<CardFunctions>>{{{pf1, {pf1}}}}; },
            WorkerStarter{[this](KernelSubject const& subject) { return start(subject); },
                          [this](KernelSubject const&, Deadline) { predecessor.pass(); }},
            times);
    }
    ~Host() {
        dies_when_killed = true;
        kernel.reset();
        for (auto& worker : workers) worker.join();
    }
    Result<std::vector<PciAddress>> pfs_in(KernelScope const& scope) const {
        auto some = pfs;
        if (scope)
            std::erase_if(some, [&](PciAddress const& pf) { return *scope != KernelSubject(pf); });
        return some;
    }
    static KernelView two_pfs() {
        KernelView view;
        view.pfs[pf0] = make_igb_pf("0000:01:00.0", "enp1s0");
        view.pfs[pf1] = make_igb_pf("0000:02:00.0", "enp2s0");
        view.routes.push_back({IpPrefix::parse("10.1.0.0/16").value(), "eth0"});
        view.network.emplace();
        view.network->netdevs["bond0"].ethernet = true;
        return view;
    }
    Result<WorkerProcess> start(KernelSubject const& pf) {
        std::lock_guard const lock(mutex);
        if (has_predecessor && pf == KernelSubject(pf0))
            return fail(Problem::pf_stuck, "a worker of an earlier vfmgrd is at its step");
        ++started[pf];
        std::array<int, 2> pair{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
        ends.emplace_back(pf, pair[1]);
        workers.emplace_back([this, pf, end = pair[1]] {
            WorkerService service(FileDescriptor(end), fake, pf);
            service.run();
        });
        return WorkerProcess{FileDescriptor(pair[0]), 4711,
                             [this, pf, end = pair[1]] {
                                 std::lock_guard const guard(mutex);
                                 ++kills[pf];
                                 if (dies_when_killed) ::shutdown(end, SHUT_RDWR);
                             },
                             [] { return "signal 9"; }, [] { return " in msleep"; }};
    }
    // The kernel releases a killed worker.
    void end(KernelSubject const& pf) {
        std::lock_guard const lock(mutex);
        for (auto const& [of, fd] : ends)
            if (of == pf) ::shutdown(fd, SHUT_RDWR);
    }
    int killed(KernelSubject const& pf) {
        std::lock_guard const lock(mutex);
        return kills[pf];
    }
    KernelView look() { return kernel->observe(std::nullopt).value(); }
};

TEST(RemoteKernel, PassesStepsAndViewsOn) {
    Host host;
    ASSERT_TRUE(host.kernel->perform(SetNumVfs{pf0, 3}, soon()));
    auto const view = host.look();
    auto direct = host.fake.view();
    for (auto const& [pci, pf] : view.pfs) direct.pfs.at(pci).observed_at = pf.observed_at;
    direct.complete = true;
    EXPECT_EQ(view, direct);
    EXPECT_FALSE(host.kernel->observe(pf1)->complete);
    EXPECT_EQ(view.pfs.at(pf0).vfs.size(), 3U);
    EXPECT_EQ(host.kernel->observe(pf1)->pfs.size(), 1U);
    EXPECT_EQ(host.started, (std::map<KernelSubject, int>{{HostNetwork{}, 1}, {pf0, 1}, {pf1, 1}}));
}

TEST(RemoteKernel, PassesRefusalsAndRemarksOnWhole) {
    Host host;
    ASSERT_TRUE(host.kernel->perform(SetNumVfs{pf0, 1}, soon()));
    VfSpec settings;
    settings.link_state = LinkState::enable;
    ConfigureVfs step{pf0, {{0, settings}}, {}};
    auto const refused = host.kernel->perform(step, soon());
    auto const direct = host.fake.perform(step, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), direct.error());
    EXPECT_FALSE(refused.error().causes.empty());
    step.best_effort = {"link_state"};
    EXPECT_EQ(host.kernel->perform(step, soon())->remarks,
              host.fake.perform(step, soon())->remarks);
}

TEST(RemoteKernel, ReadsTheFirmwareOfACardByItsWorker) {
    Host host;
    FirmwareCard card;
    card.pci = pf1;
    card.functions = {pf1};
    card.next = FirmwareSettings{true, 8, PortType::eth, {}, {}};
    card.current = FirmwareSettings{true, 4, PortType::eth, {}, {}};
    card.tool = FirmwareTool{"mstconfig", "4.21.0"};
    card.devlink = {{"enable_roce", DevlinkMode::driverinit, "true"}};
    host.fake.change_firmware([&](std::vector<FirmwareCard>& cards) { cards = {card}; });
    EXPECT_EQ(host.kernel->read_firmware(std::nullopt), std::vector{card});
    EXPECT_EQ(host.started, (std::map<KernelSubject, int>{{pf1, 1}}));
    EXPECT_EQ(host.kernel->read_firmware(pf1), std::vector{card});
    EXPECT_TRUE(host.kernel->read_firmware(pf0)->empty()) << "it is a function of no card";
    host.fake.change_firmware([](std::vector<FirmwareCard>& cards) { cards.clear(); });
    EXPECT_EQ(host.kernel->read_firmware(pf1)->at(0).problem->problem, Problem::not_found);
}

TEST(RemoteKernel, ReadsTheTrafficOfEachPfByItsWorker) {
    Host host;
    ASSERT_TRUE(host.kernel->perform(SetNumVfs{pf1, 2}, soon()));
    VfCounters counters;
    counters.rx_bytes = 1'500;
    host.fake.count({pf1, 1}, counters);
    host.fake.count(pf0, {{"out_of_sequence", 3}});
    auto const all = host.kernel->read_traffic(std::nullopt).value();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].pf, pf0);
    EXPECT_TRUE(all[0].vfs.empty()) << "its driver counts nothing";
    EXPECT_EQ(all[0].rdma_hw_counters,
              (std::map<std::string, std::uint64_t>{{"out_of_sequence", 3}}));
    EXPECT_EQ(all[1].vfs, (std::vector<VfTraffic>{{1, counters}}));
    EXPECT_EQ(host.kernel->read_traffic(pf1)->size(), 1U);
    EXPECT_TRUE(host.kernel->read_traffic(PciAddress{0, 9, 0, 0})->empty());
}

TEST(RemoteKernel, AWorkerThatHangsMakesItsPfStuckAndNoOther) {
    Gate gate;
    Host host;
    host.look();
    host.dies_when_killed = false;
    host.fake.on_perform = [&](KernelStep const& step) {
        if (subject_of(step) == KernelSubject(pf0)) gate.pass();
    };
    auto const hung = host.kernel->perform(SetNumVfs{pf0, 3}, std::chrono::steady_clock::now());
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().problem, Problem::pf_stuck);
    EXPECT_EQ(hung.error().detail,
              "0000:01:00.0: its worker (pid 4711) was asked to create 3 VFs on 0000:01:00.0 and "
              "hangs in the kernel in msleep");
    EXPECT_EQ(host.kills[pf0], 1);

    // The next request is answered at once, without a query to the worker.
    auto const began = std::chrono::steady_clock::now();
    EXPECT_EQ(host.kernel->perform(SetNumVfs{pf0, 3}, soon()).error().problem, Problem::pf_stuck);
    auto const view = host.look();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
    auto const& stuck = view.pfs.at(pf0);
    EXPECT_TRUE(stuck.stale);
    EXPECT_TRUE(stuck.pci_busy);
    EXPECT_THAT(stuck.stuck.value_or(""), HasSubstr("hangs in the kernel in msleep since "));
    EXPECT_EQ(stuck.info.ifname, "enp1s0") << "its last known state";
    EXPECT_FALSE(view.pfs.at(pf1).stale);
    EXPECT_TRUE(host.kernel->perform(SetLink{{pf1, {}}, true, 1500}, soon()));

    gate.open();
    host.end(pf0);
    // The worker's end shows when its socket ends: repeat until it does.
    while (host.look().pfs.at(pf0).stuck) std::this_thread::yield();
    EXPECT_TRUE(host.kernel->perform(SetNumVfs{pf0, 3}, soon()));
    EXPECT_EQ(host.started[pf0], 2);
}

TEST(RemoteKernel, RdmaLinksAreMadeByTheHostsOwnWorker) {
    Host host;
    SoftRdmaLink const link{"rxe0", SoftRdmaType::rxe, "bond0"};
    ASSERT_TRUE(host.kernel->perform(AddSoftRdmaLink{link}, soon()));
    EXPECT_EQ(host.started, (std::map<KernelSubject, int>{{HostNetwork{}, 1}}));
    auto const view = host.kernel->observe(HostNetwork{}).value();
    EXPECT_TRUE(view.pfs.empty());
    EXPECT_EQ(view.network->rdma.at("rxe0").ifname, "bond0");
    EXPECT_FALSE(host.kernel->observe(pf0)->network);
}

TEST(RemoteKernel, AHostsWorkerThatHangsKeepsNoPfWaiting) {
    Gate gate;
    Host host;
    host.look();
    host.dies_when_killed = false;
    host.fake.on_perform = [&](KernelStep const& step) {
        if (subject_of(step) == KernelSubject(HostNetwork{})) gate.pass();
    };
    auto const hung =
        host.kernel->perform(RemoveSoftRdmaLink{"rxe0", true}, std::chrono::steady_clock::now());
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().problem, Problem::unavailable) << "no PF is stuck";
    EXPECT_THAT(hung.error().detail, HasSubstr("the host's network: its worker (pid 4711)"));
    auto const view = host.look();
    ASSERT_TRUE(view.network);
    EXPECT_TRUE(view.network->stale);
    EXPECT_THAT(view.network->stale_reason, HasSubstr("hangs in the kernel in msleep since "));
    EXPECT_TRUE(view.network->netdevs.contains("bond0")) << "its last known state";
    EXPECT_FALSE(view.pfs.at(pf0).stale);
    EXPECT_TRUE(host.kernel->perform(SetNumVfs{pf0, 3}, soon()));
    gate.open();
    host.end(HostNetwork{});
}

TEST(RemoteKernel, ALateWorkerIsReplacedAndItsAnswerDropped) {
    Gate gate;
    std::atomic<int> calls = 0;
    Host host;
    host.fake.on_perform = [&](KernelStep const&) {
        if (calls++ == 0) gate.pass();
    };
    auto const late = host.kernel->perform(SetNumVfs{pf0, 3}, std::chrono::steady_clock::now());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::timed_out);
    EXPECT_THAT(late.error().detail, HasSubstr("was asked to create 3 VFs"));
    auto const next = host.kernel->perform(SetNumVfs{pf1, 2}, soon());
    EXPECT_TRUE(next);
    gate.open();
    EXPECT_TRUE(host.kernel->perform(SetNumVfs{pf0, 4}, soon()));
    EXPECT_EQ(host.started[pf0], 2);
}

TEST(RemoteKernel, AWorkerThatDiesIsReplaced) {
    std::atomic<bool> dies = true;
    Host host;
    // Not removed in between: the first worker's thread may still use it.
    host.fake.on_perform = [&](KernelStep const&) {
        if (dies.exchange(false)) host.end(pf0);
    };
    auto const died = host.kernel->perform(SetNumVfs{pf0, 3}, soon());
    ASSERT_FALSE(died);
    EXPECT_EQ(died.error().problem, Problem::unavailable);
    EXPECT_EQ(died.error().detail, "the worker (pid 4711) has ended: signal 9");
    EXPECT_TRUE(host.kernel->perform(SetNumVfs{pf0, 3}, soon()));
    EXPECT_EQ(host.started[pf0], 2);
    EXPECT_EQ(host.kills[pf0], 0);
}

TEST(RemoteKernel, AWorkerThatTalksNonsenseIsKilledAndReplaced) {
    std::atomic<bool> nonsense = true;
    Host host;
    host.fake.on_perform = [&](KernelStep const&) {
        if (!nonsense.exchange(false)) return;
        EXPECT_EQ(::send(host.ends.front().second, "hello\n", 6, MSG_NOSIGNAL), 6);
        while (host.killed(pf0) == 0) std::this_thread::yield();
    };
    EXPECT_EQ(host.kernel->perform(SetNumVfs{pf0, 3}, soon()).error().problem,
              Problem::unavailable);
    EXPECT_TRUE(host.kernel->perform(SetNumVfs{pf0, 3}, soon()));
}

TEST(RemoteKernel, AWorkerOfAnEarlierDaemonIsWaitedForByWhoActsOnItsPf) {
    Host host({300ms, 100ms, 100ms, 60s});
    host.has_predecessor = true;
    auto acting = std::async(std::launch::async, [&] {
        return host.kernel->perform(SetNumVfs{pf0, 3}, std::chrono::steady_clock::now() + 300ms);
    });
    auto planning = std::async(std::launch::async, [&] { return host.kernel->observe(pf0); });
    // A full observation does not wait.
    auto const view = host.look();
    EXPECT_EQ(view.pfs.at(pf0).stuck, "a worker of an earlier vfmgrd is at its step");
    EXPECT_FALSE(view.pfs.at(pf1).stale);
    EXPECT_EQ(acting.wait_for(400ms), std::future_status::timeout) << "longer than the step has";
    EXPECT_EQ(planning.wait_for(0ms), std::future_status::timeout);
    {
        std::lock_guard const lock(host.mutex);
        host.has_predecessor = false;
    }
    host.predecessor.open();
    auto const done = acting.get();
    EXPECT_TRUE(done) << done.error().detail;
    EXPECT_FALSE(planning.get()->pfs.at(pf0).stale);
    EXPECT_EQ(host.started[pf0], 1);
}

TEST(RemoteKernel, AWorkerOfAnEarlierDaemonThatNeverEndsIsGivenUp) {
    Host host({300ms, 100ms, 100ms, 50ms});
    host.has_predecessor = true;
    host.predecessor.open();
    EXPECT_EQ(host.kernel->perform(SetNumVfs{pf0, 3}, soon()).error().problem, Problem::pf_stuck);
}

TEST(RemoteKernel, APfWhoseWorkerDoesNotStartIsStaleWithTheReason) {
    Host host;
    RemoteKernel kernel([&](KernelScope const& scope) { return host.pfs_in(scope); },
                        [] { return Result<std::vector<CardFunctions>>{}; },
                        {[&](KernelSubject const& pf) -> Result<WorkerProcess> {
                             if (pf == KernelSubject(pf1)) return host.start(pf);
                             return fail(Problem::pf_stuck, "a worker of an earlier vfmgrd hangs");
                         },
                         [](KernelSubject const&, Deadline) {}},
                        host.times);
    auto const view = kernel.observe(std::nullopt).value();
    EXPECT_TRUE(view.pfs.at(pf0).stale);
    EXPECT_EQ(view.pfs.at(pf0).stuck, "a worker of an earlier vfmgrd hangs");
    EXPECT_FALSE(view.pfs.at(pf1).stale);
    EXPECT_EQ(view.routes.size(), 1U);
}

}  // namespace
}  // namespace vfmgr
