// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/serve/offer_response.hpp"

#include <fmt/format.h>

#include <algorithm>

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

template <class T>
http::Response response_of(http::Request const& request, OrTurn<T> const& answer) {
    if (auto const* const turn = std::get_if<Turn>(&answer))
        return prefers_async(request) ? http::json_response(others_first, *turn)
                                      : try_again(request, *turn);
    return http::json_response(offered, std::get<T>(answer));
}

}  // namespace

http::Response offer_response(http::Request const& request, OrTurn<SessionOffer> const& answer) {
    return response_of(request, answer);
}

http::Response offer_response(http::Request const& request, OrTurn<StreamOffer> const& answer) {
    return response_of(request, answer);
}

http::Request that_waits(http::Request request) {
    request.headers["prefer"] = waits;
    return request;
}

Result<std::optional<Turn>> turn_in(http::Response const& response) {
    if (response.status != others_first) return std::nullopt;
    VFMGR_TRY(auto const turn, from_json_text<Turn>(response.body));
    return turn;
}

}  // namespace vfmgr::serve
