// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/serve/remote_responder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/http/path_route.hpp"
#include "api/http/uri.hpp"
#include "api/types/json.hpp"

namespace vfmgr::serve {
namespace {

constexpr std::string_view waits = "respond-async";

// The header may list other preferences too, each with parameters of its own.
bool prefers_async(http::Request const& request) {
    auto const header = request.headers.find("prefer");
    if (header == request.headers.end()) return false;
    auto const all = http::lower_case(header->second);
    for (std::size_t at = 0; at < all.size();) {
        auto const end = std::min(all.find(',', at), all.size());
        auto one = std::string_view(all).substr(at, end - at);
        one = one.substr(0, one.find(';'));
        auto const first = std::min(one.find_first_not_of(" \t"), one.size());
        auto const last = one.find_last_not_of(" \t");
        if (last != std::string_view::npos && one.substr(first, last + 1 - first) == waits)
            return true;
        at = end + 1;
    }
    return false;
}

http::Response try_again(http::Request const& request, Turn const& turn) {
    auto response = http::problem_response(
        {Problem::unavailable,
         fmt::format("no place is free yet: position {} in the queue, about {} s", turn.position,
                     turn.seconds),
         fmt::format("try again in {} s; vf-guest of the host's version waits by itself",
                     turn.seconds)},
        request);
    response.headers["Retry-After"] = std::to_string(turn.seconds);
    return response;
}

}  // namespace

template <class T>
http::Response offer_response(http::Request const& request, OrTurn<T> const& answer) {
    if (auto const* const turn = std::get_if<Turn>(&answer))
        return prefers_async(request) ? http::json_response(others_first, *turn)
                                      : try_again(request, *turn);
    return http::json_response(offered, std::get<T>(answer));
}

template http::Response offer_response(http::Request const&, OrTurn<SessionOffer> const&);
template http::Response offer_response(http::Request const&, OrTurn<StreamOffer> const&);

http::Request that_waits(http::Request request) {
    request.headers["prefer"] = waits;
    return request;
}

Result<std::optional<Turn>> turn_in(http::Response const& response) {
    if (response.status != others_first) return std::nullopt;
    VFMGR_TRY(auto const turn, from_json_text<Turn>(response.body));
    return turn;
}

namespace {

constexpr std::chrono::seconds info_time{10};
constexpr std::chrono::seconds end_time{5};
constexpr std::size_t verdict_tests_max = 64;
constexpr std::size_t verdict_losses_max = 128;  // of both ends together
constexpr std::size_t verdict_warnings_max = 128;
constexpr std::size_t verdict_text_max = 2048;
constexpr char const* sessions_path = "/responder/v1/sessions";

http::Client client_of(ResponderTarget const& target) {
    http::Client client(http::TlsTarget{
        .host = target.place.host, .port = target.place.port, .fingerprint = target.fingerprint});
    client.set_bearer_token(target.token);
    return client;
}

Error of_responder(std::string const& name, Error error) {
    error.detail = fmt::format("the responder {}: {}", name, error.detail);
    return error;
}

// The error for a missing answer, whatever listens there.
Error not_reached(std::string const& name, Error error) {
    error = of_responder(name, std::move(error));
    if (error.problem == Problem::unavailable || error.problem == Problem::timed_out)
        error.remedy =
            "check that vf-guest serve runs on that machine and that no firewall is in between, "
            "and compare address, port and fingerprint with what it printed";
    return error;
}

RemotePermit wire_form(verify::SessionPermit const& permit) {
    RemotePermit out{permit, {}};
    if (permit.vf_mac != MacAddress{}) out.vf_mac = permit.vf_mac;
    return out;
}

Error not_understood(std::string_view what) {
    return {Problem::unsupported, fmt::format("its answer has {}", what),
            "use vf-guest of the same version on both hosts"};
}

bool fits(std::string_view text) {
    auto const control = [](char ch) {
        return static_cast<unsigned char>(ch) < 0x20 || ch == 0x7f;
    };
    return text.size() <= verdict_text_max && std::ranges::none_of(text, control);
}

bool fits(TestResult const& test) {
    return fits(test.name) && fits(test.detail) && fits(test.remedy) &&
           std::ranges::all_of(test.figures, [](auto const& one) { return fits(one.first); });
}

bool fits(Loss const& loss) {
    return fits(loss.counter.device) && fits(loss.counter.name) && fits(loss.detail) &&
           fits(loss.remedy);
}

bool fits(Warning const& warning) {
    return fits(warning.test) && fits(warning.detail) && fits(warning.remedy);
}

}  // namespace

Result<SessionOffer> read_session_offer(std::string_view text) {
    VFMGR_TRY(auto offer, from_json_text<SessionOffer>(text));
    if (http::is_path_id(offer.session)) return offer;
    return fail(not_understood("no session id"));
}

Result<StreamOffer> read_stream_offer(std::string_view text) {
    VFMGR_TRY(auto offer, from_json_text<StreamOffer>(text));
    if (!http::is_path_id(offer.stream)) return fail(not_understood("no stream id"));
    if (fits(offer.transport_reason.value_or(""))) return offer;
    return fail(not_understood("a reason that can't be printed"));
}

Result<Verification> read_verdict(std::string_view text) {
    VFMGR_TRY(auto verdict, from_json_text<Verification>(text));
    auto const all_fit = [](auto const& several, std::size_t most) {
        return several.size() <= most &&
               std::ranges::all_of(several, [](auto const& one) { return fits(one); });
    };
    bool const good = all_fit(verdict.tests, verdict_tests_max) &&
                      all_fit(verdict.losses, verdict_losses_max) &&
                      all_fit(verdict.warnings, verdict_warnings_max) && fits(verdict.detail) &&
                      fits(verdict.remedy) && fits(verdict.peer_gid.value_or(""));
    if (good) return verdict;
    return fail(not_understood("texts with control characters, or more than can be printed"));
}

RemoteResponder::RemoteResponder(ResponderTarget const& target)
    : name_(to_string(target.place)), client_(client_of(target)) {}

Result<http::Response> RemoteResponder::ask(http::Request const& request,
                                            std::chrono::seconds timeout) const {
    auto answer = client_.send(request, timeout);
    if (!answer) return fail(not_reached(name_, std::move(answer).error()));
    auto response = http::success_of(std::move(*answer));
    if (response) return response;
    return fail(of_responder(name_, std::move(response).error()));
}

template <class Read>
auto RemoteResponder::ask_for(http::Request const& request, std::chrono::seconds timeout,
                              Read read) const -> decltype(read(http::Response())) {
    VFMGR_TRY(auto const response, ask(request, timeout));
    auto answer = read(response);
    if (answer) return answer;
    return fail(of_responder(name_, std::move(answer).error()));
}

Result<ResponderInfo> RemoteResponder::info() const {
    return ask_for(http::make_request("GET", "/responder/v1"), info_time,
                   [](http::Response const& response) {
                       return from_json_text<ResponderInfo>(response.body);
                   });
}

Result<OrTurn<SessionOffer>> RemoteResponder::open(verify::SessionPermit const& permit,
                                                   SessionRequest const& request) const {
    SessionOpening const opening{wire_form(permit), request};
    return ask_for(that_waits(http::make_request("POST", sessions_path, nlohmann::json(opening))),
                   answer_time, [](http::Response const& response) {
                       return read_offer_or_turn<SessionOffer>(response, read_session_offer);
                   });
}

Result<OrTurn<StreamOffer>> RemoteResponder::open_stream(std::string const& session,
                                                         StreamRequest const& request) const {
    auto const path = fmt::format("{}/{}/streams", sessions_path, session);
    return ask_for(that_waits(http::make_request("POST", path, nlohmann::json(request))),
                   answer_time, [](http::Response const& response) {
                       return read_offer_or_turn<StreamOffer>(response, read_stream_offer);
                   });
}

// Ignores failure: a stream that is still open ends with its session, and the session times out.
void RemoteResponder::close_stream(std::string const& session, std::string const& stream) const {
    auto const path = fmt::format("{}/{}/streams/{}", sessions_path, session, stream);
    static_cast<void>(ask(http::make_request("DELETE", path), answer_time));
}

void RemoteResponder::drop(std::string const& session) const {
    auto const path = fmt::format("{}/{}", sessions_path, session);
    static_cast<void>(ask(http::make_request("DELETE", path), end_time));
}

Result<Verification> RemoteResponder::close(std::string const& session,
                                            verify::SessionPermit const& permit,
                                            GuestReport const& report) const {
    auto const path = fmt::format("{}/{}/report", sessions_path, session);
    VFMGR_TRY(auto verdict,
              ask_for(http::make_request("PUT", path, nlohmann::json(report)), answer_time,
                      [](http::Response const& response) { return read_verdict(response.body); }));
    verdict.run = permit.run;
    verdict.attachment = permit.attachment;
    verdict.path = permit.path;
    verdict.vf_mac = wire_form(permit).vf_mac;
    verdict.responder = name_;
    return verdict;
}

}  // namespace vfmgr::serve
