// SPDX-License-Identifier: Apache-2.0
// Writes and reads a responder's HTTP responses: 201 with an offer, 202 with a turn. A client gets
// a turn only if it sends "Prefer: respond-async" (RFC 7240). A vf-guest without support for turns
// would parse one as an offer; it gets an error that asks it to retry.
#pragma once

#include <optional>

#include "api/http/http.hpp"
#include "api/types/stream.hpp"
#include "api/types/turn.hpp"

namespace vfmgr::serve {

inline constexpr int offered = 201, others_first = 202;

[[nodiscard]] http::Response offer_response(http::Request const& request,
                                            OrTurn<SessionOffer> const& answer);
[[nodiscard]] http::Response offer_response(http::Request const& request,
                                            OrTurn<StreamOffer> const& answer);

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

}  // namespace vfmgr::serve
