// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/serve/offer_response.hpp"

#include "api/types/json.hpp"

namespace vfmgr::serve {
namespace {

template <class T>
http::Response response_of(OrTurn<T> const& answer) {
    if (auto const* const turn = std::get_if<Turn>(&answer))
        return http::json_response(others_first, *turn);
    return http::json_response(offered, std::get<T>(answer));
}

}  // namespace

http::Response offer_response(OrTurn<SessionOffer> const& answer) {
    return response_of(answer);
}

http::Response offer_response(OrTurn<StreamOffer> const& answer) {
    return response_of(answer);
}

Result<std::optional<Turn>> turn_in(http::Response const& response) {
    if (response.status != others_first) return std::nullopt;
    VFMGR_TRY(auto const turn, from_json_text<Turn>(response.body));
    return turn;
}

}  // namespace vfmgr::serve
