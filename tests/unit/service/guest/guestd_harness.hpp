// SPDX-License-Identifier: Apache-2.0
// vfmgr-guestd and vfmgrd's end of it, in one process. vfmgrd's answers are fakes; the responder is
// real (without RDMA). Guests connect to a unix socket and name their CID. One thread.
#pragma once

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/guest/link.hpp"
#include "service/guest/serve.hpp"

namespace vfmgr::guestd_test {

using namespace std::chrono_literals;

// vfmgrd's state, and what it was asked.
struct Front {
    std::mutex mutex;
    std::condition_variable changed;
    GuestVms vms{{}, true};
    std::vector<std::uint32_t> identified;
    std::vector<Verification> verdicts;
    bool takes_verdicts = true;
    std::vector<std::string> reports;  // empty: connected

    template <class Until>
    bool await(Until until) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, 20s, until);
    }
    void change(std::function<void(Front&)> const& how) {
        std::lock_guard const lock(mutex);
        how(*this);
        changed.notify_all();
    }
    bool connected(std::size_t times = 1) {
        return await(
            [&] { return std::ranges::count(reports, "") >= static_cast<std::ptrdiff_t>(times); });
    }
};

inline GuestVm a_vm(std::string const& name, std::uint32_t cid, std::int32_t start_id = 1) {
    return {{"uuid-" + name, name, start_id}, cid};
}

inline GuestAttachment an_attachment(std::string id) {
    GuestAttachment made;
    made.attachment = std::move(id);
    made.mac = *MacAddress::parse("52:54:00:11:22:33");
    made.address = *IpAddress::parse("127.0.0.1");
    made.responder = *IpAddress::parse("127.0.0.1");
    made.rdma = RdmaMode::none;
    return made;
}

inline void request_run(GuestAccess& access, std::string const& run) {
    auto& of = access.attachments.at(0);
    of.run = run;
    of.nonce = "n-" + run;
    verify::SessionPermit permit;
    permit.attachment = of.attachment;
    permit.run = run;
    permit.nonce = of.nonce;
    permit.peer_address = of.address;
    permit.host_address = of.responder;
    permit.rdma = RdmaMode::none;
    access.permits = {permit};
}

class Guestd : public testing::Test {
  protected:
    void SetUp() override {
        front.vms.vms["uuid-a"] = a_vm("a", 3);
        front.vms.vms["uuid-a"].access.attachments = {an_attachment("a1")};
        start_guestd();
    }
    void TearDown() override {
        link.reset();
        service.reset();
    }

    void start_guestd() {
        service.reset();
        auto started = guestd::Service::start({[](auto const&) { return Result<void>(); },
                                               {"/bin/false"},
                                               system_clock(),
                                               [](std::string const&) {},
                                               {},
                                               seams_tls_folder,
                                               [](std::string const&) {},
                                               seams_tls_port});
        ASSERT_TRUE(started);
        std::filesystem::remove(socket);
        ASSERT_TRUE((*started)->listen(http::UnixListen{socket}, [](http::Handler handler) {
            return [handler](http::Request request, http::Respond respond) {
                auto const cid =
                    static_cast<std::uint32_t>(std::stoul(request.headers.at("x-vsock-cid")));
                request.peer = http::VsockPeer{cid, 700};
                handler(std::move(request), std::move(respond));
            };
        }));
        std::lock_guard const lock(replacing);
        service = std::move(*started);
    }
    // Connects to the vfmgr-guestd of that moment.
    Result<FileDescriptor> connect() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        FileDescriptor other(ends[0]);
        std::lock_guard const lock(replacing);
        if (!service) return fail(Problem::unavailable, "none", "");
        service->serve(std::move(other));
        return FileDescriptor(ends[1]);
    }
    void start_front() {
        link.reset();
        guestd::FrontHooks hooks;
        hooks.vms = [this] {
            std::lock_guard const lock(front.mutex);
            return front.vms;
        };
        hooks.identify = [this](std::uint32_t cid) -> Result<VmIdentity> {
            std::lock_guard const lock(front.mutex);
            front.identified.push_back(cid);
            for (auto const& [uuid, vm] : front.vms.vms)
                if (vm.cid == cid) return vm.vm;
            return fail(Problem::not_found, "no running VM has this CID", "");
        };
        hooks.confirm = [](VmIdentity const&, std::uint32_t) { return Result<void>(); };
        hooks.topology = [](VmIdentity const&) { return Result<HostTopology>(HostTopology{}); };
        hooks.start_run = [this](VmIdentity const& vm, RunTicket const& ticket) {
            std::lock_guard const lock(front.mutex);
            request_run(front.vms.vms.at(vm.uuid).access, ticket.run);
            return Result<void>();
        };
        hooks.enrol = [this](VmIdentity const& vm, std::string const& secret) {
            return enrol(vm, secret);
        };
        hooks.verdict = [this](Verification& verification) {
            std::lock_guard const lock(front.mutex);
            if (!front.takes_verdicts) throw std::runtime_error("no memory");
            verification.remedy = "what vfmgrd knows";
            front.verdicts.push_back(verification);
            front.changed.notify_all();
        };
        hooks.report = [this](Result<void> const& connected) {
            front.change([&](Front& now) {
                now.reports.push_back(connected ? "" : connected.error().detail);
            });
        };
        link = std::make_unique<guestd::Link>([this] { return connect(); }, hooks, *clock);
        link->start();
    }

    http::Response ask(std::uint32_t cid, std::string method, std::string path,
                       std::string body = {}, std::map<std::string, std::string> query = {}) {
        http::Request request{std::move(method), std::move(path), std::move(query), {}, {}, {}};
        request.headers["x-vsock-cid"] = std::to_string(cid);
        if (!body.empty()) request.headers["content-type"] = "application/json";
        request.body = std::move(body);
        auto answer = http::Client(http::UnixTarget{socket}).send(request, 30s);
        return answer ? *answer : http::Response{.status = 0};
    }
    // Afterwards vfmgr-guestd has what vms() returns: it takes messages in their order.
    void push() {
        std::promise<void> taken;
        link->ask({.call = guestd::Call::find_interop, .attachment = "none"},
                  [&](Result<guestd::Answer> const&) { taken.set_value(); });
        taken.get_future().wait();
    }
    void change(std::function<void(Front&)> const& how) {
        front.change(how);
        push();
    }
    // Starts vfmgrd. `times`: how often this test does, and vfmgr-guestd.
    void start_front_and_push(std::size_t times = 1) {
        start_front();
        ASSERT_TRUE(front.connected(times));
        push();
    }
    GuestConfig config(std::uint32_t cid) {
        auto const answer = ask(cid, "GET", "/guest/v1/config");
        EXPECT_EQ(answer.status, 200) << answer.body;
        return from_json_text<GuestConfig>(answer.body).value_or(GuestConfig{});
    }
    std::string run_in_config() {
        auto const now = config(3);
        return now.attachments.empty() ? "none" : now.attachments[0].run.value_or("none");
    }
    // The guest waits for another configuration than this.
    std::future<http::Response> poll(GuestConfig const& now) {
        return std::async(std::launch::async, [this, revision = std::to_string(now.revision)] {
            return ask(3, "GET", "/guest/v1/config", {}, {{"wait", "60"}, {"revision", revision}});
        });
    }
    bool guest_waits() {
        for (auto const until = std::chrono::steady_clock::now() + 20s;
             std::chrono::steady_clock::now() < until; std::this_thread::yield())
            if (link->guest_waits("uuid-a")) return true;
        return false;
    }
    // The guest reports that it could not test.
    http::Response report_error(std::string const& run, std::string const& nonce) {
        return ask(3, "PUT", "/guest/v1/runs/" + run + "/error",
                   nlohmann::json(GuestReport{nonce, {}, {}, {}, {}, "no VF"}).dump());
    }

    std::string const socket = std::filesystem::temp_directory_path() /
                               ("guestd-test-" + std::to_string(::getpid()) + ".sock");
    Front front;
    std::function<Result<GuestKey>(VmIdentity const&, std::string const&)> enrol;
    std::string seams_tls_folder;  // empty: no guest is on TCP
    std::uint16_t seams_tls_port = 0;
    Clock* clock = &system_clock();
    std::mutex replacing;  // guards `service` while it is replaced
    std::unique_ptr<guestd::Service> service;
    std::unique_ptr<guestd::Link> link;
};

}  // namespace vfmgr::guestd_test
