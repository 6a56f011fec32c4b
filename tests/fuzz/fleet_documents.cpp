// SPDX-License-Identifier: Apache-2.0
// Any bytes as a document that a fleet's leader acts on. The first byte selects the type. An
// accepted one is written, read again and equal; it says what to do, and goes on to an end that is
// written and read as well.
#include <cstdint>
#include <string>
#include <string_view>

#include "api/types/json.hpp"
#include "service/fleet/drain/drain.hpp"
#include "service/fleet/rollout/rollout.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::fleet;

// Enough for a rollout of a few hosts; a fuzzer's document may have many.
constexpr int steps_max = 40;

template <class T>
void require_written(T const& value) {
    auto const text = to_json_text(nlohmann::json(value));
    auto const again = from_json_text<T>(text);
    require(again.has_value() && to_json_text(nlohmann::json(*again)) == text);
}

// Its own spec can be invalid after a change of the rules, so only what it was read as is written.
void go_on(Move move) {
    (void)sentences_of(move);
    (void)residue_of(move);
    for (int i = 0; i < steps_max && ask_of(move); ++i)
        move = after(move, {i % 3 == 0 ? Outcome::refusal : Outcome::success}, {});
    if (auto const back = turned_back(move, "", {})) require_written(*back);
    require_written(move);
}

void go_on(Drain drain) {
    (void)sentences_of(drain);
    for (auto const& ask : asks_of(drain))
        if (auto const* const one = std::get_if<NameAsk>(&ask))
            drain = named(drain, one->attachment, "");
    drain = observed(drain, {{"1", "vm1", OnDrain::move}}, "");
    require_written(cordon_written(drain, ""));
}

void go_on(Rollout rollout) {
    (void)sentences_of(rollout);
    for (int i = 0; i < steps_max; ++i) {
        if (auto begun = run_planned(rollout, "")) rollout = *begun;
        auto const asks = asks_of(rollout);
        if (asks.empty()) break;
        RolloutAnswer answer{asks.back().host, Outcome::success, {}, {}};
        if (i % 5 == 4) answer.outcome = Outcome::refusal;
        rollout = after(rollout, answer, "");
        require_written(rollout);
    }
    if (auto const back = reverted(rollout, "")) require_written(*back);
}

template <class T>
void as_fleet_document(std::string_view text) {
    auto value = from_json_text<T>(text);
    if (!value) return require(!value.error().detail.empty() && !value.error().remedy.empty());
    require_written(*value);
    if constexpr (!std::is_same_v<T, RolloutSpec>) go_on(std::move(*value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
    switch (data[0]) {
        case 'm':
            as_fleet_document<Move>(text);
            break;
        case 'd':
            as_fleet_document<Drain>(text);
            break;
        case 'r':
            as_fleet_document<Rollout>(text);
            break;
        default:
            as_fleet_document<RolloutSpec>(text);
    }
    return 0;
}
