// SPDX-License-Identifier: Apache-2.0
// What a responder answers over HTTP, written and read: 201 with an offer, 202 with a turn. A turn
// is for who says that it waits, with "Prefer: respond-async" (RFC 7240): others, as the vf-guest
// of a version without turns, would read it as an offer, and are told in words to try again.
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

// The same request, of who waits.
[[nodiscard]] http::Request that_waits(http::Request request);

// Nothing where it is an offer.
[[nodiscard]] Result<std::optional<Turn>> turn_in(http::Response const& response);

// `read` reads the offer from its text.
template <class T, class Read>
[[nodiscard]] Result<OrTurn<T>> read_offer_or_turn(http::Response const& response, Read read) {
    VFMGR_TRY(auto const turn, turn_in(response));
    if (turn) return *turn;
    VFMGR_TRY(auto offer, read(std::string_view(response.body)));
    return offer;
}

}  // namespace vfmgr::serve
