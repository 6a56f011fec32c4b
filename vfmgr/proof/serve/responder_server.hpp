// SPDX-License-Identifier: Apache-2.0
// The host's end of the tests without a daemon: its routes, its server, and vf-guest serve.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/http/path_route.hpp"
#include "api/types/guest.hpp"
#include "api/types/time.hpp"
#include "vfmgr/proof/host/responder.hpp"
#include "vfmgr/proof/serve/credentials.hpp"

namespace boost::asio {
class thread_pool;
}

namespace vfmgr::serve {

enum class To { info, open_session, open_stream, close_stream, report, drop_session };

// Its ids are the session's, and the stream's where the path has one. Pure; any thread.
[[nodiscard]] Result<http::FoundRoute<To>> responder_route(std::string_view method,
                                                           std::string_view path);

struct Served {
    ResponderInfo info;
    std::string ifname;  // the netdev that has info.address
    HostPort listen;
    Credentials credentials;
    std::optional<Guid> port_guid{};  // its InfiniBand port's
};

// A responder for other hosts (api/openapi-responder.yaml): clients with the token may open
// sessions on it. Owned by serve(); the handler is called on the io thread and never blocks, and
// the work runs on threads of its own.
class ResponderServer {
  public:
    ResponderServer(Served served, verify::Responder& responder);
    ~ResponderServer();
    ResponderServer(ResponderServer const&) = delete;
    ResponderServer& operator=(ResponderServer const&) = delete;

    // For Server::listen(). Valid during the lifetime of this object; stop the server first.
    [[nodiscard]] http::Handler handler();

  private:
    struct Job {
        http::Request request;
        http::FoundRoute<To> route;
        http::Respond respond;
    };
    void accept(http::Request request, http::Respond respond);
    [[nodiscard]] Result<void> check_token(http::Request const& request) const;
    void work(Job const& job);
    [[nodiscard]] Result<http::Response> answer(Job const& job);
    [[nodiscard]] Result<http::Response> open_session(Job const& job);
    [[nodiscard]] Result<http::Response> close_session(Job const& job);
    void remember(std::string const& session);
    [[nodiscard]] Time forget(std::string const& session);

    Served const served_;
    verify::Responder& responder_;
    std::mutex mutex_;                     // guards started_
    std::map<std::string, Time> started_;  // by session
    std::atomic<std::size_t> waiting_ = 0;
    // One verdict takes a second and must not block others. Destroyed first: it finishes what runs,
    // and drops what waits.
    std::unique_ptr<boost::asio::thread_pool> threads_;
};

// vf-guest serve: the host's end of the tests without a daemon, for another host's vfmgrd or
// vf-guest. Owns everything that it starts; one thread.

struct ServeOptions {
    std::string address;  // the address under test, on a netdev of this machine
    std::string listen;   // for control; empty: `address`
    std::uint16_t port = responder_tls_port;
    std::string state_folder = "/var/lib/vf-guest";
    std::string token_file;  // empty: one in the state folder
    std::size_t sessions = 4;
    std::vector<std::string> rping_program;  // the command that runs interop::serve_rping()
};

// Serves until `stop` is readable. Calls `ready` once, when clients can connect.
[[nodiscard]] Result<void> serve(ServeOptions const& options, int stop,
                                 std::function<void(Served const&)> const& ready);

// One line: address, netdev, port, fingerprint and the token's location.
[[nodiscard]] std::string ready_text(Served const& ready);
[[nodiscard]] std::string ready_json(Served const& ready);

}  // namespace vfmgr::serve
