// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/host_client.hpp"

#include <algorithm>

#include "api/os/descriptor.hpp"
#include "api/types/json.hpp"
#include "guest-tools/net/ib_port.hpp"
#include "vfmgr/proof/host/judge.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"

namespace vfmgr::guest {
namespace {

Deadline::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::string in_one_line(Error const& error) {
    auto text = detail_with_causes(error);
    if (!error.remedy.empty()) text += "; remedy: " + error.remedy;
    return text;
}

Pace::Pace(Limit limit)
    : interval_(duration_of(1 / limit.per_second)),
      saved_max_(duration_of((limit.burst - 1) / limit.per_second)) {}

// Turns are `interval_` apart. A pause saves up its turns for a burst, up to saved_max_.
Deadline Pace::turn(Deadline now) {
    std::lock_guard const lock(mutex_);
    auto const mine = std::max(next_, now - saved_max_);
    next_ = mine + interval_;
    return std::max(mine, now);
}

void Pace::free() {
    std::lock_guard const lock(mutex_);
    next_ -= interval_;
}

// Waits for time only: nothing makes a turn come earlier.
void Pace::await() {
    static_cast<void>(await_readable({}, turn(std::chrono::steady_clock::now())));
}

namespace {

constexpr std::chrono::seconds answer_time{30};
constexpr std::chrono::seconds enrolment_time{10};
constexpr std::size_t error_bytes_max = 900;  // the host refuses sentences over 1024 bytes

template <class T>
http::Request make(std::string method, std::string path, T const& value) {
    return http::make_request(std::move(method), std::move(path), nlohmann::json(value));
}

}  // namespace

Result<http::Response> HostClient::send(http::Request const& request,
                                        std::chrono::seconds timeout) {
    paces_->requests.await();
    VFMGR_TRY(auto response, client_.send(request, timeout));
    return http::success_of(std::move(response));
}

template <class T>
Result<T> HostClient::ask(http::Request const& request, std::chrono::seconds timeout) {
    VFMGR_TRY(auto const response, send(request, timeout));
    return from_json_text<T>(response.body);
}

Result<GuestConfig> HostClient::config(std::chrono::seconds wait, std::uint64_t revision) {
    auto request = http::make_request("GET", "/guest/v1/config");
    request.query["wait"] = std::to_string(wait.count());
    request.query["revision"] = std::to_string(revision);
    return ask<GuestConfig>(request, wait + answer_time);
}

Result<GuestKey> HostClient::enrol(std::string const& secret) {
    return ask<GuestKey>(make("POST", "/guest/v1/enrolment", KeyRequest{secret}), enrolment_time);
}

Result<HostTopology> HostClient::topology() {
    return ask<HostTopology>(http::make_request("GET", "/guest/v1/topology"), answer_time);
}

Result<GuestAttachment> HostClient::start_run(std::string const& attachment,
                                              RunRequest const& request) {
    paces_->sessions.await();
    return ask<GuestAttachment>(
        make("POST", "/guest/v1/attachments/" + attachment + "/runs", request), answer_time);
}

Result<OrTurn<SessionOffer>> HostClient::open_session(SessionRequest const& request) {
    paces_->sessions.await();
    VFMGR_TRY(auto const response,
              send(serve::that_waits(make("POST", "/guest/v1/sessions", request)), answer_time));
    if (response.status == serve::others_first) paces_->sessions.free();
    return serve::read_offer_or_turn<SessionOffer>(response, from_json_text<SessionOffer>);
}

Result<OrTurn<StreamOffer>> HostClient::open_stream(std::string const& session,
                                                    StreamRequest const& request) {
    auto const path = "/guest/v1/sessions/" + session + "/streams";
    VFMGR_TRY(auto const response,
              send(serve::that_waits(make("POST", path, request)), answer_time));
    return serve::read_offer_or_turn<StreamOffer>(response, from_json_text<StreamOffer>);
}

Result<void> HostClient::close_stream(std::string const& session, std::string const& stream) {
    auto const path = "/guest/v1/sessions/" + session + "/streams/" + stream;
    VFMGR_CHECK(send(http::make_request("DELETE", path), answer_time));
    return {};
}

Result<Verification> HostClient::report(std::string const& session, GuestReport const& report) {
    return ask<Verification>(make("PUT", "/guest/v1/sessions/" + session + "/report", report),
                             answer_time);
}

Result<Verification> HostClient::report_error(GuestAttachment const& attachment,
                                              Error const& error) {
    GuestReport report;
    report.nonce = attachment.nonce;
    report.facts = port_facts("/sys", attachment);
    report.error = verify::printable(in_one_line(error), error_bytes_max);
    return ask<Verification>(
        make("PUT", "/guest/v1/runs/" + attachment.run.value_or("") + "/error", report),
        answer_time);
}

}  // namespace vfmgr::guest
