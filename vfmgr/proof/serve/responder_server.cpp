// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/serve/responder_server.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "api/os/descriptor.hpp"
#include "api/types/json.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/proof/digest.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/serve/local_end.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"

namespace vfmgr::serve {
namespace {

constexpr std::array<http::PathRoute<To>, 6> responder_routes{{
    {To::info, "GET", "/responder/v1"},
    {To::open_session, "POST", "/responder/v1/sessions"},
    {To::drop_session, "DELETE", "/responder/v1/sessions/{}"},
    {To::open_stream, "POST", "/responder/v1/sessions/{}/streams"},
    {To::close_stream, "DELETE", "/responder/v1/sessions/{}/streams/{}"},
    {To::report, "PUT", "/responder/v1/sessions/{}/report"},
}};

}  // namespace

Result<http::FoundRoute<To>> responder_route(std::string_view method, std::string_view path) {
    return http::find_route<To>(responder_routes, method, path,
                                {Problem::not_found, "a responder has no such path",
                                 "GET /responder/v1 returns its version"});
}

namespace {

constexpr std::size_t jobs_max = 64;
constexpr std::size_t workers = 4;
constexpr std::chrono::minutes session_lasts{10};  // longer than any session

// Compares digests, which have one length whatever the client sent.
bool same_secret(std::string_view one, std::string_view other) {
    auto const digest = [](std::string_view text) {
        return verify::digest_hex("", std::as_bytes(std::span(text)));
    };
    auto const first = digest(one);
    auto const second = digest(other);
    return CRYPTO_memcmp(first.data(), second.data(), first.size()) == 0;
}

// All hosts have the same token, so each address is a client of its own.
std::string client_name(http::Peer const& peer) {
    auto const* const remote = std::get_if<http::TcpPeer>(&peer);
    return "address:" + (remote ? remote->address : std::string());
}

verify::SessionPermit permit_of(RemotePermit const& remote, Served const& served) {
    return {remote,
            remote.vf_mac.value_or(MacAddress{}),
            served.info.address,
            served.ifname,
            served.port_guid,
            {}};
}

}  // namespace

ResponderServer::ResponderServer(Served served, verify::Responder& responder)
    : served_(std::move(served)),
      responder_(responder),
      threads_(std::make_unique<boost::asio::thread_pool>(workers)) {}

ResponderServer::~ResponderServer() = default;

http::Handler ResponderServer::handler() {
    return [this](http::Request request, http::Respond respond) {
        accept(std::move(request), std::move(respond));
    };
}

// Runs on the io thread.
void ResponderServer::accept(http::Request request, http::Respond respond) {
    auto const refuse = [&](Error const& error) {
        respond(http::problem_response(error, request));
    };
    if (auto const known = check_token(request); !known) return refuse(known.error());
    if (auto const place = http::make_known(request, {client_name(request.peer)}); !place)
        return refuse(place.error());
    auto route = responder_route(request.method, request.path);
    if (!route) return refuse(route.error());
    if (auto const known = http::check_query(request, {}); !known) return refuse(known.error());
    if (auto other = http::refuse_other_media(request)) return respond(std::move(*other));
    if (waiting_ >= jobs_max)
        return refuse({Problem::unavailable, "the responder is busy", "try again in a second"});
    ++waiting_;
    boost::asio::post(*threads_,
                      [this, job = Job{request, std::move(*route), respond}] { work(job); });
}

Result<void> ResponderServer::check_token(http::Request const& request) const {
    auto const header = request.headers.find("authorization");
    auto const given =
        header == request.headers.end() ? std::string_view() : http::bearer_token(header->second);
    if (!given.empty() && same_secret(given, served_.credentials.token)) return {};
    return fail(Problem::unauthorized,
                given.empty() ? "the request has no token" : "the token is not the responder's",
                "send the token from the token file of vf-guest serve");
}

void ResponderServer::work(Job const& job) {
    --waiting_;
    auto response = guarded([&] { return answer(job); });
    job.respond(response ? std::move(*response)
                         : http::problem_response(response.error(), job.request));
}

Result<http::Response> ResponderServer::answer(Job const& job) {
    auto const& ids = job.route.ids;
    switch (job.route.to) {
        case To::info:
            return http::json_response(200, served_.info);
        case To::open_session:
            return open_session(job);
        case To::report:
            return close_session(job);
        case To::open_stream: {
            VFMGR_TRY(auto const request, from_json_text<StreamRequest>(job.request.body));
            VFMGR_TRY(auto const answer, responder_.open_stream(ids[0], request));
            return offer_response(job.request, answer);
        }
        case To::close_stream:
            responder_.close_stream(ids[0], ids[1]);
            return http::Response{.status = 204};
        case To::drop_session:
            responder_.drop(ids[0]);
            static_cast<void>(forget(ids[0]));
            return http::Response{.status = 204};
    }
    return fail(Problem::internal, "this path has no answer");
}

Result<http::Response> ResponderServer::open_session(Job const& job) {
    VFMGR_TRY(auto const opening, from_json_text<SessionOpening>(job.request.body));
    VFMGR_TRY(auto const answer,
              responder_.open(permit_of(opening.permit, served_), opening.request));
    if (auto const* const offer = std::get_if<SessionOffer>(&answer)) remember(offer->session);
    return offer_response(job.request, answer);
}

Result<http::Response> ResponderServer::close_session(Job const& job) {
    VFMGR_TRY(auto const report, from_json_text<GuestReport>(job.request.body));
    VFMGR_TRY(auto verification, responder_.close(job.route.ids[0], report));
    verification.started_at = forget(job.route.ids[0]);
    verification.finished_at = system_clock().now();
    if (verification.vf_mac == MacAddress{}) verification.vf_mac.reset();
    return http::json_response(200, verification);
}

// Also forgets sessions that ended without a report.
void ResponderServer::remember(std::string const& session) {
    auto const now = system_clock().now();
    std::lock_guard const lock(mutex_);
    std::erase_if(started_, [&](auto const& one) { return one.second + session_lasts < now; });
    started_[session] = now;
}

Time ResponderServer::forget(std::string const& session) {
    std::lock_guard const lock(mutex_);
    auto const found = started_.extract(session);
    return found ? found.mapped() : system_clock().now();
}

namespace {

Result<Served> find_served(IpAddress const& address, std::uint16_t echo_port) {
    VFMGR_TRY(auto const end, find_local_end(address));
    VFMGR_TRY(auto const rdma_device, find_rdma_device(end));
    Served served;
    served.ifname = end.netdev.name;
    served.port_guid = end.netdev.port_guid;
    served.info = {VFMGR_VERSION, address, echo_port, end.netdev.mac, end.netdev.mtu, rdma_device};
    return served;
}

}  // namespace

Result<void> serve(ServeOptions const& options, int stop,
                   std::function<void(Served const&)> const& ready) {
    VFMGR_TRY(auto const address, IpAddress::parse(options.address));
    verify::ResponderLimits limits;
    limits.sessions_max = options.sessions;
    VFMGR_TRY(auto served, find_served(address, limits.echo_port));
    served.listen = {options.listen.empty() ? to_string(address) : options.listen, options.port};
    VFMGR_TRY(served.credentials,
              credentials_in(options.state_folder, options.token_file, served.listen.host));
    VFMGR_TRY(auto const responder,
              verify::Responder::start(limits, check_neighbour,
                                       interop::cm_streams(options.rping_program)));
    ResponderServer answering(served, *responder);
    http::Server server{http::Limits{}};
    VFMGR_CHECK(server.listen(
        http::TlsListen{served.listen.host, served.listen.port, served.credentials.certificate_file,
                        served.credentials.key_file},
        answering.handler()));
    server.start();
    ready(served);
    static_cast<void>(await_readable(std::array{stop}, Deadline::max()));
    server.stop();
    return {};
}

std::string ready_text(Served const& ready) {
    return fmt::format("serving {} on {} ({}), listening at {}, fingerprint {}, token in {}",
                       to_string(ready.info.address), ready.ifname, ready.info.rdma_device,
                       to_string(ready.listen), ready.credentials.fingerprint,
                       ready.credentials.token_file);
}

std::string ready_json(Served const& ready) {
    nlohmann::json const out{{"address", to_string(ready.info.address)},
                             {"ifname", ready.ifname},
                             {"rdma_device", ready.info.rdma_device},
                             {"echo_port", ready.info.echo_port},
                             {"host", ready.listen.host},
                             {"port", ready.listen.port},
                             {"fingerprint", ready.credentials.fingerprint},
                             {"token_file", ready.credentials.token_file}};
    return to_json_text(out);
}

}  // namespace vfmgr::serve
