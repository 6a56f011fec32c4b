// SPDX-License-Identifier: Apache-2.0
// What a responder answers over HTTP, written and read: 201 with an offer, 202 with a turn.
#pragma once

#include <optional>

#include "api/http/http.hpp"
#include "api/types/stream.hpp"
#include "api/types/turn.hpp"

namespace vfmgr::serve {

inline constexpr int offered = 201, others_first = 202;

[[nodiscard]] http::Response offer_response(OrTurn<SessionOffer> const& answer);
[[nodiscard]] http::Response offer_response(OrTurn<StreamOffer> const& answer);

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
