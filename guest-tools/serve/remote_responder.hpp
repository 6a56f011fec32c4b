// SPDX-License-Identifier: Apache-2.0
// Client of another host's responder (vf-guest serve): the calls of verify::Responder with the same
// meaning, over TLS (api/openapi-responder.yaml). Its verdict is trusted; its messages are parsed
// with limits all the same. Each call blocks, at most for `answer_time`; one thread.
#pragma once

#include <chrono>

#include "api/http/http.hpp"
#include "api/types/responder.hpp"
#include "api/types/stream.hpp"
#include "api/types/turn.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::serve {

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
[[nodiscard]] Result<ResponderInfo> read_info(std::string_view text);
[[nodiscard]] Result<SessionOffer> read_session_offer(std::string_view text);
[[nodiscard]] Result<StreamOffer> read_stream_offer(std::string_view text);
[[nodiscard]] Result<Verification> read_verdict(std::string_view text);

}  // namespace vfmgr::serve
