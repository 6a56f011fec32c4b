// SPDX-License-Identifier: Apache-2.0
// Writes and reads a responder's HTTP responses: 201 with an offer, 202 with a turn. A client gets
// a turn only if it sends "Prefer: respond-async" (RFC 7240). A vf-guest without support for turns
// would parse one as an offer; it gets an error that asks it to retry.
#pragma once

#include <chrono>
#include <optional>

#include "api/http/http.hpp"
#include "api/types/guest.hpp"
#include "vfmgr/proof/permit.hpp"

namespace vfmgr::serve {

inline constexpr int offered = 201, others_first = 202;

// `T`: SessionOffer or StreamOffer.
template <class T>
[[nodiscard]] http::Response offer_response(http::Request const& request, OrTurn<T> const& answer);

// Adds "Prefer: respond-async" to the request.
[[nodiscard]] http::Request that_waits(http::Request request);

// Returns nothing if the response is an offer.
[[nodiscard]] Result<std::optional<Turn>> turn_in(http::Response const& response);

// `read` parses the offer's text.
template <class T, class Read>
[[nodiscard]] Result<OrTurn<T>> read_offer_or_turn(http::Response const& response, Read read) {
    VFMGR_TRY(auto const turn, turn_in(response));
    if (turn) return *turn;
    VFMGR_TRY(auto offer, read(std::string_view(response.body)));
    return offer;
}

// Client of another host's responder (vf-guest serve): the calls of verify::Responder with the same
// meaning, over TLS (api/openapi-responder.yaml). Its verdict is trusted; its messages are parsed
// with limits all the same. Each call blocks, at most for `answer_time`; one thread.

// Shorter than a guest's wait for its host.
inline constexpr std::chrono::seconds answer_time{20};

class RemoteResponder {
  public:
    explicit RemoteResponder(ResponderTarget const& target);

    // "host:port", for Verification.responder.
    [[nodiscard]] std::string const& name() const { return name_; }
    // Fails with unavailable or timed_out if the responder is not reached or has another
    // fingerprint, and with unauthorized if it rejects the token.
    [[nodiscard]] Result<ResponderInfo> info() const;
    // Sends those parts of the permit that the responder does not know itself.
    [[nodiscard]] Result<OrTurn<SessionOffer>> open(verify::SessionPermit const& permit,
                                                    SessionRequest const& request) const;
    [[nodiscard]] Result<OrTurn<StreamOffer>> open_stream(std::string const& session,
                                                          StreamRequest const& request) const;
    void close_stream(std::string const& session, std::string const& stream) const;
    // Returns its verdict with this responder's name and the permit's run, VF and path; without
    // times.
    [[nodiscard]] Result<Verification> close(std::string const& session,
                                             verify::SessionPermit const& permit,
                                             GuestReport const& report) const;
    void drop(std::string const& session) const;

  private:
    [[nodiscard]] Result<http::Response> ask(http::Request const& request,
                                             std::chrono::seconds timeout) const;
    // Sends the request and parses the answer with `read`.
    template <class Read>
    [[nodiscard]] auto ask_for(http::Request const& request, std::chrono::seconds timeout,
                               Read read) const -> decltype(read(http::Response()));

    std::string name_;
    http::Client client_;
};

// Parse a responder's answers from bytes: ids must fit into a path, texts onto a terminal.
[[nodiscard]] Result<SessionOffer> read_session_offer(std::string_view text);
[[nodiscard]] Result<StreamOffer> read_stream_offer(std::string_view text);
[[nodiscard]] Result<Verification> read_verdict(std::string_view text);

}  // namespace vfmgr::serve
