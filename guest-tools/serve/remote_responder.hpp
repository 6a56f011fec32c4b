// SPDX-License-Identifier: Apache-2.0
// Another host's responder (vf-guest serve), asked as verify::Responder is: the same calls with the
// same meaning, over TLS (api/openapi-responder.yaml). It is trusted with the verdict; what it
// sends is read with limits all the same. Each call blocks, at most for `answer_time`; one thread.
#pragma once

#include <chrono>

#include "api/http/http.hpp"
#include "api/types/responder.hpp"
#include "api/types/stream.hpp"
#include "api/types/turn.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::serve {

// Less than a guest waits for its host.
inline constexpr std::chrono::seconds answer_time{20};

class RemoteResponder {
  public:
    explicit RemoteResponder(ResponderTarget const& target);

    // "host:port", for Verification.responder.
    [[nodiscard]] std::string const& name() const { return name_; }
    // unavailable and timed_out: not reached, or not the one with this fingerprint. unauthorized:
    // not with this token.
    [[nodiscard]] Result<ResponderInfo> info() const;
    // Of the permit, what the responder does not know itself.
    [[nodiscard]] Result<OrTurn<SessionOffer>> open(verify::SessionPermit const& permit,
                                                    SessionRequest const& request) const;
    [[nodiscard]] Result<OrTurn<StreamOffer>> open_stream(std::string const& session,
                                                          StreamRequest const& request) const;
    void close_stream(std::string const& session, std::string const& stream) const;
    // Its verdict, as of this responder and of the permit's run, VF and path; without times.
    [[nodiscard]] Result<Verification> close(std::string const& session,
                                             verify::SessionPermit const& permit,
                                             GuestReport const& report) const;
    void drop(std::string const& session) const;

  private:
    [[nodiscard]] Result<http::Response> ask(http::Request const& request,
                                             std::chrono::seconds timeout) const;
    // Asks, and reads the answer by `read`.
    template <class Read>
    [[nodiscard]] auto ask_for(http::Request const& request, std::chrono::seconds timeout,
                               Read read) const -> decltype(read(http::Response()));

    std::string name_;
    http::Client client_;
};

// What a responder answers, from its bytes: ids that fit into a path, texts that fit onto a
// terminal.
[[nodiscard]] Result<ResponderInfo> read_info(std::string_view text);
[[nodiscard]] Result<SessionOffer> read_session_offer(std::string_view text);
[[nodiscard]] Result<StreamOffer> read_stream_offer(std::string_view text);
[[nodiscard]] Result<Verification> read_verdict(std::string_view text);

}  // namespace vfmgr::serve
