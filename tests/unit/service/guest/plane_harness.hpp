// SPDX-License-Identifier: Apache-2.0
// A guest plane for tests: hooks are fakes, the responder is real (without RDMA, on loopback). One
// for each test, owned by its thread.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <nlohmann/json.hpp>

#include "api/types/guest.hpp"
#include "api/types/json.hpp"
#include "service/guest/plane.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::plane_test {

using std::chrono::seconds;
using testing::HasSubstr;

inline constexpr std::uint32_t cid_a = 3;
inline constexpr std::uint32_t cid_b = 4;

struct Daemon {
    std::mutex mutex;
    std::map<std::uint32_t, VmIdentity> vms{{cid_a, {"uuid-a", "a", 1}},
                                            {cid_b, {"uuid-b", "b", 2}}};
    std::map<std::string, GuestAccess> access;  // by UUID
    std::vector<Verification> verdicts;
    std::vector<RunTicket> tickets;
    std::vector<std::string> waits;  // names of VMs that began to wait
    std::string throwing;            // UUID of the VM for which access() has a bug
    std::string slow;                // UUID of the VM for which it blocks until this is changed
    std::condition_variable quick;
    std::size_t confirmed = 0;
};

inline std::uint16_t echo_port() {
    return static_cast<std::uint16_t>(20000 + ::getpid() % 8000);
}

inline GuestAttachment attachment(std::string id) {
    GuestAttachment made;
    made.attachment = std::move(id);
    made.mac = *MacAddress::parse("52:54:00:11:22:33");
    made.address = *IpAddress::parse("127.0.0.1");
    made.responder = *IpAddress::parse("127.0.0.1");
    made.rdma = RdmaMode::none;
    made.echo_port = echo_port();
    return made;
}

inline void want_run(GuestAccess& access, std::string const& id, std::string run,
                     std::string nonce) {
    auto& expected = *std::ranges::find(access.attachments, id, &GuestAttachment::attachment);
    expected.run = run;
    expected.nonce = nonce;
    verify::SessionPermit permit;
    permit.attachment = id;
    permit.run = std::move(run);
    permit.nonce = std::move(nonce);
    permit.vf_mac = expected.mac.value();
    permit.peer_address = expected.address;
    permit.host_address = expected.responder;
    permit.rdma = RdmaMode::none;
    access.permits.push_back(permit);
}

template <class T>
std::string body_of(T const& value) {
    return nlohmann::json(value).dump();
}

struct Plane : testing::Test {
    Daemon daemon;
    std::unique_ptr<verify::Responder> responder;
    GuestPlaneLimits limits;
    Clock* clock = &system_clock();
    std::unique_ptr<GuestPlane> plane;

    void SetUp() override {
        verify::ResponderLimits responder_limits;
        responder_limits.echo_port = echo_port();
        auto started =
            verify::Responder::start(responder_limits, [](auto const&) { return Result<void>(); });
        ASSERT_TRUE(started);
        responder = std::move(*started);
        daemon.access["uuid-a"].attachments = {attachment("a1")};
        daemon.access["uuid-b"].attachments = {attachment("b1")};
        limits.requests = {.burst = 1000, .per_second = 1000};
        limits.sessions = {.burst = 1000, .per_second = 1000};
        start();
    }
    void TearDown() override { plane.reset(); }

    Result<VmIdentity> running(std::uint32_t cid) {
        std::lock_guard const lock(daemon.mutex);
        auto const found = daemon.vms.find(cid);
        if (found != daemon.vms.end()) return found->second;
        return fail(Problem::not_found, "no running VM has this CID", "");
    }
    void start(std::function<Result<VmIdentity>(std::uint32_t)> identify = {}) {
        plane.reset();
        GuestPlaneHooks hooks;
        hooks.identify =
            identify ? std::move(identify) : [this](std::uint32_t cid) { return running(cid); };
        hooks.confirm = [this](VmIdentity const& vm, std::uint32_t cid) -> Result<void> {
            std::lock_guard const lock(daemon.mutex);
            ++daemon.confirmed;
            auto const found = daemon.vms.find(cid);
            if (found != daemon.vms.end() && found->second == vm) return {};
            return fail(Problem::not_found, "this VM has stopped", "");
        };
        hooks.access = [this](VmIdentity const& vm) -> Result<GuestAccess> {
            std::unique_lock lock(daemon.mutex);
            if (vm.uuid == daemon.throwing) throw std::runtime_error("no memory");
            daemon.quick.wait(lock, [&] { return vm.uuid != daemon.slow; });
            for (auto const& [cid, running] : daemon.vms)
                if (running == vm) return daemon.access[vm.uuid];
            return fail(Problem::not_found, "this VM has stopped", "");
        };
        hooks.topology = [](VmIdentity const& vm) -> Result<HostTopology> {
            return HostTopology{{{"00/02.1/00.0 of " + vm.name, 0x15b3, 0x101e, {}}}, {}};
        };
        hooks.start_run = [this](VmIdentity const& vm, RunTicket const& ticket) -> Result<void> {
            std::lock_guard const lock(daemon.mutex);
            daemon.tickets.push_back(ticket);
            want_run(daemon.access[vm.uuid], ticket.attachment, ticket.run, ticket.nonce);
            return {};
        };
        hooks.on_verification = [this](Verification const& verification) {
            std::lock_guard const lock(daemon.mutex);
            daemon.verdicts.push_back(verification);
        };
        hooks.waits = [this](VmIdentity const& vm) {
            std::lock_guard const lock(daemon.mutex);
            daemon.waits.push_back(vm.name);
        };
        plane = std::make_unique<GuestPlane>(hooks, *responder, *clock, limits);
    }

    std::vector<std::string> waits() {
        std::lock_guard const lock(daemon.mutex);
        return daemon.waits;
    }
    std::future<http::Response> send(http::Request request) {
        // As vf-guest does.
        request.headers.emplace("prefer", "respond-async");
        if (!request.body.empty()) request.headers.emplace("content-type", "application/json");
        auto promise = std::make_shared<std::promise<http::Response>>();
        auto answer = promise->get_future();
        plane->handler()(std::move(request), [promise](http::Response response) {
            promise->set_value(std::move(response));
        });
        return answer;
    }
    http::Response ask(std::string method, std::string path, std::string body = {},
                       http::Peer peer = http::VsockPeer{cid_a, 700},
                       std::map<std::string, std::string> query = {}) {
        auto answer =
            send({std::move(method), std::move(path), std::move(query), {}, std::move(body), peer});
        if (answer.wait_for(seconds(20)) != std::future_status::ready) {
            ADD_FAILURE() << "no answer";
            return {};
        }
        return answer.get();
    }
    void change(std::function<void(Daemon&)> const& how) {
        {
            std::lock_guard const lock(daemon.mutex);
            how(daemon);
        }
        daemon.quick.notify_all();
        plane->changed();
    }
    GuestConfig config(http::Peer peer = http::VsockPeer{cid_a, 700}) {
        auto const response = ask("GET", "/guest/v1/config", {}, peer);
        EXPECT_EQ(response.status, 200) << response.body;
        return from_json_text<GuestConfig>(response.body).value();
    }
    std::vector<Verification> verdicts() {
        std::lock_guard const lock(daemon.mutex);
        return daemon.verdicts;
    }
    http::Response open(std::string run, std::string nonce) {
        return ask("POST", "/guest/v1/sessions",
                   body_of(SessionRequest{"a1", std::move(run), std::move(nonce), queue_pair()}));
    }
    static QueuePairEnd queue_pair() {
        return {verify::gid_hex(IpAddress::parse("127.0.0.1")->gid()), 17, 42, 1024, 1};
    }
};

}  // namespace vfmgr::plane_test
