// SPDX-License-Identifier: Apache-2.0
// Both ends of the broker's socket, with a host of fakes behind it.
#include "service/broker/serve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include "api/os/file.hpp"
#include "api/os/socket_address.hpp"
#include "service/broker/link.hpp"
#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/unit/counter.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::broker {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

PciAddress const served_pf{0, 1, 0, 0};
std::string const uuid_a = "11111111-1111-1111-1111-111111111111";
std::string const uuid_b = "22222222-2222-2222-2222-222222222222";

Deadline in_time() {
    return std::chrono::steady_clock::now() + 30s;
}

KernelView one_pf() {
    KernelView view;
    view.pfs[served_pf] = make_igb_pf("0000:01:00.0", "enp1s0");
    view.routes.push_back({IpPrefix::parse("10.1.0.0/16").value(), "eth0"});
    view.network.emplace();
    view.network->netdevs["bond0"].ethernet = true;
    return view;
}

// systemd's socket, and brokers on it, one after the other.
class Served {
  public:
    Served() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        hypervisor.add(make_vm("a", uuid_a));
        hypervisor.add(make_vm("b", uuid_b));
        auto const address = SocketAddress::of_unix(path()).value();
        EXPECT_EQ(::bind(listener_.get(), address.get(), address.length), 0);
        EXPECT_EQ(::listen(listener_.get(), 8), 0);
        accepting_ = std::thread([this] { accept_all(); });
        link = std::make_unique<Link>(path(), [this](News one) {
            if (one == News::vms) news.add();
        });
        front_kernel = std::make_unique<BrokerKernel>(*link);
        front_hypervisor = std::make_unique<BrokerHypervisor>(*link);
    }
    ~Served() {
        link.reset();
        ::shutdown(listener_.get(), SHUT_RDWR);
        accepting_.join();
        for (auto& each : serving_) each.join();
    }
    // The broker is killed: its connections end, and its memory with it.
    void kill_broker() {
        std::lock_guard const lock(mutex_);
        for (auto& [service, fd] : services_) ::shutdown(fd, SHUT_RDWR);
    }
    void ring() {
        std::lock_guard const lock(mutex_);
        for (auto& [service, fd] : services_) service->pass_on(News::vms);
    }
    [[nodiscard]] std::string path() const { return folder_.file("broker.sock"); }
    [[nodiscard]] std::string records_file() const { return folder_.file("records.json"); }

    FakeKernel kernel{one_pf()};
    FakeHypervisor hypervisor{kernel};
    Collectors const collectors{[] { return std::string("of the host"); },
                                [] { return std::string("of others"); }};
    HostRules rules;
    test::Counter news;
    std::string greeting = "0.2.0";
    std::unique_ptr<Link> link;
    std::unique_ptr<BrokerKernel> front_kernel;
    std::unique_ptr<BrokerHypervisor> front_hypervisor;

  private:
    void accept_all() {
        while (true) {
            int const fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            std::lock_guard const lock(mutex_);
            keepers_.push_back(Keeper::open(records_file()).value());
            services_.emplace_back(
                std::make_unique<Service>(
                    FileDescriptor(fd), services_.size() + 1, rules,
                    Seams{kernel, hypervisor, collectors, *keepers_.back(), underway_}),
                fd);
            serving_.emplace_back(
                [this, service = services_.back().first.get()] { service->run(greeting); });
        }
    }

    test::TemporaryFolder folder_;
    FileDescriptor listener_;
    std::mutex mutex_;  // guards the members below
    StepsUnderway underway_;
    std::vector<std::unique_ptr<Keeper>> keepers_;
    std::vector<std::pair<std::unique_ptr<Service>, int>> services_;
    std::vector<std::thread> serving_;
    std::thread accepting_;
};

AttachHostdev attach_of(Served& host, std::string const& vm) {
    VfId const vf{served_pf, 0};
    auto const pci = find_vf({host.kernel.view(), {}}, vf)->pci;
    return {vm, "00000001", vf, pci, {}, true, true, "vm"};
}

// Creates a VF that can be attached.
void make_vf(Served& host) {
    ASSERT_TRUE(host.front_kernel->perform(SetNumVfs{served_pf, 1}, in_time()));
    ASSERT_TRUE(host.front_kernel->perform(BindVfs{served_pf, {0}, "vfio-pci"}, in_time()));
}

TEST(Broker, PassesViewsOnWhole) {
    Served host;
    make_vf(host);
    auto direct = host.kernel.observe(std::nullopt).value();
    auto const view = host.front_kernel->observe(std::nullopt).value();
    for (auto const& [pci, pf] : view.pfs) direct.pfs.at(pci).observed_at = pf.observed_at;
    direct.network->observed_at = view.network->observed_at;
    EXPECT_EQ(view, direct);
    EXPECT_FALSE(host.front_kernel->observe(served_pf)->complete);
    EXPECT_TRUE(host.front_kernel->observe(HostNetwork{})->pfs.empty());

    auto const before = std::chrono::system_clock::now();
    auto vms = host.front_hypervisor->observe(std::nullopt).value();
    EXPECT_GE(vms.observed_at, before);
    EXPECT_LE(vms.observed_at, std::chrono::system_clock::now());
    vms.observed_at = host.hypervisor.view().observed_at;
    EXPECT_EQ(vms, host.hypervisor.view());
    EXPECT_EQ(host.front_hypervisor->observe(uuid_b)->vms.size(), 1U);
    EXPECT_EQ(host.front_kernel->read_traffic(served_pf)->size(), 1U);
    EXPECT_TRUE(host.front_kernel->read_firmware(std::nullopt)->empty());
    EXPECT_EQ(collect(*host.link, Call::collect_host), "of the host");
    EXPECT_EQ(collect(*host.link, Call::collect_owners), "of others");
}

TEST(Broker, PassesErrorsOnWhole) {
    Served host;
    auto const refused = host.front_kernel->perform(SetNumVfs{served_pf, 500}, in_time());
    auto const direct = host.kernel.perform(SetNumVfs{served_pf, 500}, in_time());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, direct.error().problem);
    EXPECT_EQ(refused.error().detail, direct.error().detail);
    EXPECT_EQ(refused.error().remedy, direct.error().remedy);
    EXPECT_TRUE(host.front_hypervisor->settle(uuid_a, in_time()));
    EXPECT_EQ(host.hypervisor.settled(), 1U);
}

TEST(Broker, ReturnsTheVmAsTheStepReadItBack) {
    Served host;
    make_vf(host);
    auto const attached = host.front_hypervisor->perform(attach_of(host, uuid_a), in_time());
    ASSERT_TRUE(attached) << attached.error().detail;
    auto const direct = host.hypervisor.view().vms.at(uuid_a);
    EXPECT_EQ(direct.live.size(), 1U);
    if (attached->vm) EXPECT_EQ(attached->vm->vms.at(uuid_a), direct);
}

TEST(Broker, RefusesWithoutTouchingAnything) {
    Served host;
    make_vf(host);
    auto foreign = attach_of(host, uuid_a);
    foreign.pci = {0, 5, 0, 0};
    auto const performed = host.hypervisor.performed();
    auto const refused = host.front_hypervisor->perform(foreign, in_time());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("the broker refuses this"));
    EXPECT_EQ(host.hypervisor.performed(), performed);
}

TEST(Broker, RemembersOverAKillWhoHadAVf) {
    Served host;
    make_vf(host);
    auto const attach = attach_of(host, uuid_a);
    ASSERT_TRUE(host.front_hypervisor->perform(attach, in_time()));
    DetachHostdev const detach{uuid_a, attach.attachment, attach.vf, attach.pci, true, true, "vm"};
    ASSERT_TRUE(host.front_hypervisor->perform(detach, in_time()));
    host.kill_broker();
    auto const other = attach_of(host, uuid_b);
    auto const refused = host.front_hypervisor->perform(other, in_time());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("was not reset since VM " + uuid_a));
    ASSERT_TRUE(host.front_kernel->perform(ResetVf{attach.vf}, in_time()));
    EXPECT_TRUE(host.front_hypervisor->perform(other, in_time()));
}

// As a version without a broker has left it.
DetachHostdev attached_before(Served& host) {
    EXPECT_TRUE(host.kernel.perform(SetNumVfs{served_pf, 1}, in_time()));
    EXPECT_TRUE(host.kernel.perform(BindVfs{served_pf, {0}, "vfio-pci"}, in_time()));
    auto const attach = attach_of(host, uuid_a);
    EXPECT_TRUE(host.hypervisor.perform(attach, in_time()));
    return {uuid_a, attach.attachment, attach.vf, attach.pci, true, true, "vm"};
}

TEST(Broker, KnowsWhatVmsHadBeforeItsFirstStep) {
    Served host;
    auto const detach = attached_before(host);
    ASSERT_TRUE(host.front_hypervisor->perform(detach, in_time()));
    auto const other = attach_of(host, uuid_b);
    auto const refused = host.front_hypervisor->perform(other, in_time());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("was not reset since VM " + uuid_a));
    ASSERT_TRUE(host.front_kernel->perform(ResetVf{detach.vf}, in_time()));
    EXPECT_TRUE(host.front_hypervisor->perform(other, in_time()));
}

TEST(Broker, WritesDownWhatVmsHadWhenTheyAreObserved) {
    Served host;
    auto const detach = attached_before(host);
    ASSERT_TRUE(host.front_hypervisor->observe(uuid_b));
    auto const records = parse_records(read_file(host.records_file()).value()).value();
    EXPECT_EQ(records.at(detach.vf).vm_uuid, uuid_a);
    EXPECT_FALSE(records.at(detach.vf).clean);
}

// At a boot the VFs are made anew, and the VM's XML goes on naming one.
TEST(Broker, KnowsOfVfsMadeAnewWhichVmsHave) {
    Served host;
    auto const detach = attached_before(host);
    ASSERT_TRUE(host.front_hypervisor->observe(std::nullopt));
    host.hypervisor.stop(uuid_a);
    ASSERT_TRUE(host.kernel.perform(SetNumVfs{served_pf, 0}, in_time()));
    ASSERT_TRUE(host.front_kernel->perform(SetNumVfs{served_pf, 1}, in_time()));
    ASSERT_TRUE(host.front_hypervisor->observe(std::nullopt));
    auto const records = parse_records(read_file(host.records_file()).value()).value();
    ASSERT_TRUE(records.contains(detach.vf));
    EXPECT_FALSE(records.at(detach.vf).clean);
}

TEST(Broker, IsAskedAgainWhereItWasKilled) {
    std::atomic<int> calls = 0;
    Served host;
    host.kernel.on_perform = [&](KernelStep const&) {
        if (calls++ == 0) host.kill_broker();
    };
    EXPECT_TRUE(host.front_kernel->perform(SetNumVfs{served_pf, 3}, in_time()));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(host.kernel.view().pfs.at(served_pf).vfs.size(), 3U);
}

TEST(Broker, IsNotAskedForeverWhereItAlwaysDies) {
    std::atomic<int> calls = 0;
    Served host;
    host.kernel.on_perform = [&](KernelStep const&) {
        ++calls;
        host.kill_broker();
    };
    auto const failed = host.front_kernel->perform(SetNumVfs{served_pf, 3}, in_time());
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().problem, Problem::unavailable);
    EXPECT_THAT(failed.error().remedy, HasSubstr("systemctl status"));
    EXPECT_LE(calls, brokers_per_request_max);
}

TEST(Broker, PassesNewsOn) {
    Served host;
    ASSERT_TRUE(host.front_hypervisor->observe(std::nullopt));
    ASSERT_TRUE(host.news.reaches(1)) << "connected: what was before is unknown";
    host.ring();
    EXPECT_TRUE(host.news.reaches(2));
    host.kill_broker();
    while (!host.front_hypervisor->observe(uuid_a)) std::this_thread::yield();
    EXPECT_TRUE(host.news.reaches(3)) << "what was meanwhile is unknown";
}

// vfmgrd is killed in the middle of a step: the next one finds its end, not its middle.
TEST(Broker, LetsAFrontsStepEndBeforeTheNextFrontActsOnThatPf) {
    std::promise<void> go;
    auto const gate = go.get_future().share();
    std::promise<void> began;
    std::atomic<bool> first = true;
    Served host;
    host.kernel.on_perform = [&](KernelStep const&) {
        if (!first.exchange(false)) return;
        began.set_value();
        gate.wait();
    };
    auto killed = std::make_unique<Link>(host.path(), [](News) {});
    auto asking = std::async(std::launch::async, [&] {
        return killed->ask({.call = Call::perform, .step = SetNumVfs{served_pf, 3}}, in_time());
    });
    began.get_future().wait();
    auto observing =
        std::async(std::launch::async, [&] { return host.front_kernel->observe(served_pf); });
    auto acting = std::async(std::launch::async, [&] {
        return host.front_kernel->perform(SetLink{{served_pf, {}}, true, 1500}, in_time());
    });
    EXPECT_TRUE(host.front_kernel->observe(std::nullopt)) << "all of the host is shown meanwhile";
    EXPECT_TRUE(host.front_kernel->observe(HostNetwork{}));
    EXPECT_EQ(observing.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(acting.wait_for(0s), std::future_status::timeout);
    go.set_value();
    EXPECT_EQ(observing.get()->pfs.at(served_pf).vfs.size(), 3U);
    EXPECT_TRUE(acting.get());
    EXPECT_TRUE(asking.get());
}

TEST(Broker, EndsWithAFrontThatSendsWhatIsNoRequest) {
    Served host;
    auto const address = SocketAddress::of_unix(host.path()).value();
    FileDescriptor const stranger(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(stranger.get(), address.get(), address.length), 0);
    ASSERT_TRUE(send_all(stranger.get(), "{\"id\": 1, \"call\": \"format\"}\n"));
    std::vector<std::string> lines;
    EXPECT_TRUE(each_line(stranger.get(), [&](std::string const& line) {
        lines.push_back(line);
        return true;
    }));
    ASSERT_EQ(lines.size(), 1U) << "the greeting, and then the end";
    EXPECT_EQ(parse_greeting(lines.front())->protocol, protocol);
    EXPECT_TRUE(host.front_kernel->observe(served_pf)) << "others go on";
}

TEST(Broker, HasOnlySoManyRequestsUnderway) {
    std::promise<void> go;
    auto const gate = go.get_future().share();
    Served host;
    host.kernel.on_perform = [&](KernelStep const&) { gate.wait(); };
    std::vector<std::future<Result<Observed>>> all;
    for (std::size_t i = 0; i < requests_max + 1; ++i)
        all.push_back(std::async(std::launch::async, [&] {
            return host.front_kernel->perform(SetLink{{served_pf, {}}, true, 1500}, in_time());
        }));
    auto const refused = [](std::future<Result<Observed>>& one) {
        return one.wait_for(0s) == std::future_status::ready;
    };
    while (std::ranges::none_of(all, refused)) std::this_thread::yield();
    go.set_value();
    int limited = 0;
    for (auto& one : all) {
        auto const ended = one.get();
        if (!ended && ended.error().problem == Problem::limit_exceeded) ++limited;
    }
    EXPECT_EQ(limited, 1);
}

// A listener that greets each connection with this line.
std::string error_of_link(std::string const& greeting) {
    test::TemporaryFolder folder;
    auto const path = folder.file("broker.sock");
    auto const address = SocketAddress::of_unix(path).value();
    FileDescriptor const listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), address.get(), address.length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    std::thread greeter([&] {
        FileDescriptor const front(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        EXPECT_TRUE(send_all(front.get(), greeting));
    });
    Link link(path, [](News) {});
    auto const observed = BrokerKernel(link).observe(std::nullopt);
    greeter.join();
    return observed ? "" : observed.error().detail;
}

TEST(Broker, ThatIsNoneOrOfAnotherVersionIsNamed) {
    EXPECT_EQ(error_of_link(to_line(Greeting{protocol + 1, "9.9"})),
              "the broker is of another version: 9.9");
    EXPECT_THAT(error_of_link("SSH-2.0-OpenSSH\n"), HasSubstr("of another program"));
    EXPECT_THAT(error_of_link(std::string(5000, 'x')), HasSubstr("does not greet"));
    EXPECT_THAT(error_of_link("{\"protocol\""), HasSubstr("ends at once"));
    Link nowhere("/nowhere/broker.sock", [](News) {});
    auto const absent = BrokerKernel(nowhere).observe(std::nullopt);
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().detail, "the broker can't be asked: /nowhere/broker.sock: ENOENT");
}

}  // namespace
}  // namespace vfmgr::broker
