// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/hosts/following.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/daemon.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;

constexpr Backoff reconnecting{milliseconds(500), milliseconds(30'000)};
constexpr std::size_t in_flight_max = 4;       // of one host
constexpr std::chrono::seconds read_again{2};  // after a GET failed

}  // namespace

Following::Following(FollowingCalls calls, DocumentLimits const& limits, KnownEvent known)
    : calls_(std::move(calls)), limits_(limits), backoff_(reconnecting), last_(std::move(known)) {}

Deadline Following::turn(Deadline now, Time at) {
    if (phase_ == Phase::waiting && now >= due_) {
        if (!catching_up_since_) catching_up_since_ = at;
        phase_ = Phase::opening;
        // With the last event once more: a restored store has another of that number.
        checks_last_ = last_.number > 0 && !last_.is.empty();
        calls_.open(last_.number == 0 ? std::nullopt
                                      : std::optional(last_.number - (checks_last_ ? 1 : 0)));
    }
    if (phase_ == Phase::waiting) return due_;
    if (phase_ != Phase::open) return Deadline::max();
    if (now < due_) return due_;
    while (in_flight_.size() < in_flight_max) {
        auto what = next();
        if (!what) break;
        send({std::move(*what)});
    }
    if (in_flight_.empty()) catching_up_ = false;
    return Deadline::max();
}

std::optional<Following::What> Following::next() {
    if (std::exchange(wants_introduction_, false)) return Introduction{};
    if (std::exchange(wants_about_, false)) return About{};
    auto get = refresh_.next();
    if (!get) return std::nullopt;
    return std::move(*get);
}

void Following::again(What const& what) {
    if (std::holds_alternative<Introduction>(what))
        wants_introduction_ = true;
    else if (std::holds_alternative<About>(what))
        wants_about_ = true;
    else
        refresh_.add(std::get<Get>(what));
}

void Following::begun(Time at) {
    phase_ = Phase::open;
    due_ = Deadline{};
    backoff_.reset();
    parser_ = std::make_unique<http::SseParser>();
    unreachable_since_.reset();
    unreachable_why_.clear();
    catching_up_ = true;
    catching_up_since_ = at;
    wants_introduction_ = wants_about_ = true;
    if (!std::exchange(has_read_, true)) refresh_.all();
}

void Following::came(std::string_view part, Deadline now, Time at) {
    if (phase_ != Phase::open) return;
    bool const sane = parser_->feed(part, [this](http::SentEvent const& event) { take(event); });
    if (sane) return;
    calls_.close();
    ended({Problem::unavailable, "it sent an event that is too long", {}}, now, at);
}

void Following::take(http::SentEvent const& event) {
    auto const number = parse_digits(event.id, {.max = UINT64_MAX}).value_or(0);
    bool const is_event = event.name.empty();
    if (std::exchange(checks_last_, false) && is_event) {
        if (number == last_.number && told_apart_by(event.data) == last_.is)
            return calls_.event({event.id, "current", {}});
        calls_.other_history(last_.number);
        refresh_.all();
        calls_.event({std::to_string(number - 1), "resync", {}});
    }
    // It never gave the number that it was asked to resume after.
    if (event.name == "resync" && number < last_.number) calls_.other_history(last_.number);
    if (number > 0) last_ = {number, is_event ? told_apart_by(event.data) : std::string()};
    if (event.name == "resync") {
        wants_introduction_ = true;
        refresh_.all();
    } else if (is_event) {
        refresh_.note(event.data);
    }
    calls_.event(event);
}

void Following::ended(Error const& why, Deadline now, Time at) {
    if (phase_ == Phase::waiting) return;
    phase_ = Phase::waiting;
    due_ = now + backoff_.next();
    // What was asked for is asked again when it answers: the answers of before don't come, or are
    // of another time.
    for (auto const& [number, reading] : in_flight_) again(reading.what);
    in_flight_.clear();
    if (!unreachable_since_) unreachable_since_ = at;
    unreachable_why_ = why.detail;
}

std::string Following::path_of(What const& what) {
    if (auto const* const get = std::get_if<Get>(&what)) return fleet::path_of(*get);
    return std::holds_alternative<Introduction>(what) ? "/v1/fleet" : "/v1";
}

void Following::send(Reading reading, std::string const& cursor) {
    auto request = http::make_request("GET", path_of(reading.what));
    if (!cursor.empty()) request.query["cursor"] = cursor;
    auto const number = ++numbers_;
    in_flight_[number] = std::move(reading);
    calls_.get(number, std::move(request));
}

void Following::answered(std::uint64_t number, Result<http::Response> const& answer, Deadline now,
                         Time at) {
    auto const found = in_flight_.find(number);
    if (found == in_flight_.end()) return;  // of a connection that has ended since
    auto reading = std::move(found->second);
    in_flight_.erase(found);
    auto const what = reading.what;
    bool read = false;
    if (auto const* const get = std::get_if<Get>(&what))
        read = answer && apply(*get, reading, *answer, at);
    else if (answer && answer->status == 200)
        read = std::holds_alternative<About>(what) ? learn_version(*answer) : introduced(*answer);
    // It answers its stream and fails this one: it is asked again, not at once.
    if (read) return trouble_.clear();
    trouble_ =
        !answer ? answer.error().detail
                : fmt::format("GET {} is answered with status {}", path_of(what), answer->status);
    again(what);
    due_ = now + read_again;
}

bool Following::introduced(http::Response const& response) {
    auto const contact = read_contact(response.body);
    if (contact) calls_.contact(*contact);
    return contact.has_value();
}

bool Following::learn_version(http::Response const& response) {
    auto const document = parse_json(response.body);
    auto const about = document ? from_json_document<vfmgr::About>(*document, UnknownKeys::ignored)
                                : Result<vfmgr::About>(fail(document.error()));
    if (about) version_ = about->version;
    return about.has_value();
}

// False: it is to be read again.
bool Following::apply(Get const& get, Reading& reading, http::Response const& response, Time at) {
    if (response.status == 404 && !is_list(get)) {
        erase_item(documents_, get.collection, get.id, at);
        return true;
    }
    if (response.status != 200) return false;
    if (is_list(get)) return apply_list(get, reading, response, at);
    // What can't be read leaves its part incomplete: reading it again would not help.
    static_cast<void>(put_item(documents_, get.collection, get.id, response.body, limits_, at));
    return true;
}

bool Following::apply_list(Get const& get, Reading& reading, http::Response const& response,
                           Time at) {
    auto page = read_list_page(response.body, limits_);
    if (!page) return false;
    auto& items = reading.items;
    std::ranges::move(page->items, std::back_inserter(items));
    // One more than are allowed, and the part says that it is incomplete.
    if (page->next && items.size() <= limits_.items_max) {
        send(std::move(reading), *page->next);
        return true;
    }
    put_list(documents_, get.collection, std::move(items), limits_, at);
    return true;
}

std::optional<Stale> Following::stale() const {
    if (unreachable_since_) return Stale{*unreachable_since_, StaleWhy::unreachable};
    if (!catching_up_) return std::nullopt;
    return Stale{catching_up_since_.value_or(Time{}), StaleWhy::catching_up};
}

}  // namespace vfmgr::fleet
