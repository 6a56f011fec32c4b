// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/programs/simulated_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/http/sse.hpp"
#include "api/types/fleet_host.hpp"
#include "api/types/json.hpp"
#include "api/types/reservation.hpp"
#include "api/types/time.hpp"

namespace vfmgr::simulation {

namespace {

constexpr std::size_t recent_max = 256;  // events that a stream can resume after
constexpr std::string_view reservations_path = "/v1/reservations/";

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    auto const parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return {};
    return number;
}

std::string const* header(http::Request const& request, char const* name) {
    auto const found = request.headers.find(name);
    return found == request.headers.end() ? nullptr : &found->second;
}

http::Response tagged(int status, std::string body, std::string const& tag) {
    http::Response response;
    response.status = status;
    response.headers["ETag"] = tag;
    response.body = std::move(body);
    return response;
}

tl::unexpected<Error> nothing_there(http::Request const& request) {
    return fail(Problem::not_found, fmt::format("the simulation has no {}", request.path),
                "see tests/fleet/programs/simulated_host.hpp");
}

tl::unexpected<Error> outdated(std::string detail) {
    return fail(Problem::precondition_failed, std::move(detail), "read it again");
}

}  // namespace

struct SimulatedHost::Reader {
    std::uint64_t after = 0;
    bool too_late = false;  // it asked for events that are no longer kept
    std::function<void()> wake{};
    std::size_t& streams;

    Reader(std::uint64_t last, std::size_t& count) : after(last), streams(count) { ++streams; }
    ~Reader() { --streams; }
    Reader(Reader const&) = delete;
    Reader& operator=(Reader const&) = delete;
};

SimulatedHost::SimulatedHost(std::uint32_t number, Views const& views, Commits& commits,
                             Counts& counts, bool authenticated, std::string const& fleet)
    : number_(number),
      views_(views),
      commits_(commits),
      counts_(counts),
      authenticated_(authenticated),
      free_(views.free) {
    if (fleet.empty()) return;
    membership_.emplace();
    membership_->fleet = fleet;
    membership_->host = fmt::format("h{}", number);
    membership_->urls = {"https://127.0.0.1:8480"};  // which no host calls
}

// Changes are answered when they are on the disk, everything else at once.
void SimulatedHost::answer(http::Request request, http::Respond respond) {
    ++counts_.requests;
    auto const* const tcp = std::get_if<http::TcpPeer>(&request.peer);
    if (authenticated_ && !(tcp && tcp->certificate))
        return respond(http::problem_response(
            {Problem::unauthorized, "a client of the fleet's CA is asked for", "show one"},
            request));
    if (tcp) static_cast<void>(http::make_known(request, {tcp->address, {}}).has_value());
    if (request.method == "GET") return respond(read(request));
    auto changed = change(request);
    if (!changed) return respond(http::problem_response(changed.error(), request));
    ++changes_;
    auto line = fmt::format("{} {} {} {}", number_, request.method, request.path, request.body);
    commits_.commit(std::move(line), [respond = std::move(respond), answer = std::move(*changed)] {
        respond(answer);
    });
}

http::Response SimulatedHost::read(http::Request const& request) {
    auto answer = request.path == "/v1/events" ? follow(request) : document(request);
    return answer ? std::move(*answer) : http::problem_response(answer.error(), request);
}

Result<http::Response> SimulatedHost::document(http::Request const& request) {
    auto const& path = request.path;
    if (path == "/livez" || path == "/readyz") return http::Response{};
    VFMGR_CHECK(http::check_query(request, {"limit"}));
    if (auto const limit = request.query.find("limit");
        limit != request.query.end() && number_in(limit->second).value_or(0) < 100)
        return fail(Problem::invalid_request, "the simulation answers whole lists",
                    "ask for 100 items or more");
    if (path == "/v1/fleet" && membership_) {
        FleetView view;
        view.membership = membership_;
        view.store = fmt::format("store-{}", number_);
        view.last_event = last_event_;
        return tagged(200, to_json_text(JsonWriter::encode(view)), "\"fleet\"");
    }
    if (path == "/v1/identities" && !identities_.is_null())
        return tagged(200, to_json_text(identities_), fmt::format("\"{}\"", identities_revision_));
    if (path.starts_with(reservations_path)) {
        auto const found = reservations_.find(path.substr(reservations_path.size()));
        if (found == reservations_.end()) return nothing_there(request);
        return with_tag(request, to_json_text(found->second));
    }
    auto const found = views_.documents.find(path);
    if (found == views_.documents.end()) return nothing_there(request);
    auto text = found->second.of(number_, drifted_);
    if (path == "/v1/identities") return tagged(200, std::move(text), "\"1\"");
    if (path != "/v1/reservations" || reservations_.empty())
        return with_tag(request, std::move(text));
    VFMGR_TRY(auto list, parse_json(text));
    for (auto const& [name, one] : reservations_) list["items"].push_back(one);
    return with_tag(request, to_json_text(list));
}

// Nothing of a host changes without a change of its number of changes.
http::Response SimulatedHost::with_tag(http::Request const& request, std::string text) {
    auto const tag = fmt::format("\"{:x}-{:x}\"", number_, changes_);
    auto const* const known = header(request, "if-none-match");
    if (!known || *known != tag) return tagged(200, std::move(text), tag);
    ++counts_.unchanged;
    return tagged(304, {}, tag);
}

Result<http::Response> SimulatedHost::change(http::Request const& request) {
    VFMGR_CHECK(check_fence(request));
    auto const& path = request.path;
    if (path == "/v1/identities" && request.method == "PUT") return put_identities(request);
    if (path.starts_with(reservations_path)) {
        auto const name = path.substr(reservations_path.size());
        if (request.method == "PUT") return reserve(request, name);
        if (request.method == "DELETE") return release(name);
    }
    if (path == "/v1/fleet" && request.method == "PUT") {
        VFMGR_TRY(auto const answer, from_json_text<JoinAnswer>(request.body));
        membership_.emplace();
        membership_->fleet = answer.fleet;
        membership_->host = answer.host;
        membership_->urls = answer.urls;
        return http::json_response(200, *membership_);
    }
    return nothing_there(request);
}

// A host keeps the highest fence that it got, and refuses whoever has a lower one.
Result<void> SimulatedHost::check_fence(http::Request const& request) {
    auto const* const text = header(request, "vfmgr-fence");
    if (!text) return {};
    auto const fence = number_in(*text);
    if (!fence) return fail(Problem::invalid_request, "Vfmgr-Fence is a number", "send a number");
    if (*fence < fence_) return outdated(fmt::format("fence {} is behind {}", *fence, fence_));
    fence_ = *fence;
    return {};
}

Result<http::Response> SimulatedHost::reserve(http::Request const& request,
                                              std::string const& name) {
    VFMGR_TRY(auto spec, from_json_text<ReservationSpec>(request.body));
    if (auto const known = reservations_.find(name); known != reservations_.end())
        return http::json_response(200, known->second);
    if (free_.size() < spec.count)
        return fail(Problem::conflict,
                    fmt::format("{} VFs are free, {} were asked for", free_.size(), spec.count),
                    "release others first");
    auto const now = system_clock().now();
    auto const first = free_.end() - spec.count;
    Reservation reservation{name,    spec, {first, free_.end()},
                            "fleet", now,  now + std::chrono::seconds(spec.seconds)};
    free_.erase(first, free_.end());
    auto const kept = reservations_.emplace(name, nlohmann::json(reservation));
    return http::json_response(200, kept.first->second);
}

Result<http::Response> SimulatedHost::release(std::string const& name) {
    auto const found = reservations_.find(name);
    if (found == reservations_.end())
        return fail(Problem::not_found, "there is no reservation " + name,
                    "GET /v1/reservations lists those of this host");
    VFMGR_TRY(auto const kept, from_json_document<Reservation>(found->second));
    free_.insert(free_.end(), kept.vfs.begin(), kept.vfs.end());
    reservations_.erase(found);
    http::Response response;
    response.status = 204;
    return response;
}

Result<http::Response> SimulatedHost::put_identities(http::Request const& request) {
    auto const tag = fmt::format("\"{}\"", identities_revision_);
    if (auto const* const expected = header(request, "if-match"); expected && *expected != tag)
        return outdated(fmt::format("the identities are of revision {}", tag));
    VFMGR_TRY(auto given, parse_json(request.body));
    auto const generation = [](nlohmann::json const& of) {
        auto const found = of.find("generation");
        return found != of.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
    };
    if (!identities_.is_null() && generation(given) < generation(identities_))
        return outdated(
            fmt::format("generation {} is behind {}", generation(given), generation(identities_)));
    identities_ = std::move(given);
    ++identities_revision_;
    return tagged(200, to_json_text(identities_), fmt::format("\"{}\"", identities_revision_));
}

Result<http::Response> SimulatedHost::follow(http::Request const& request) {
    auto after = std::optional(last_event_);
    if (auto const* const id = header(request, "last-event-id"))
        after = number_in(*id);
    else if (auto const given = request.query.find("after"); given != request.query.end())
        after = number_in(given->second);
    if (!after) return fail(Problem::invalid_request, "an event has a number", "send a number");
    std::erase_if(readers_, [](auto const& one) { return one.expired(); });
    auto const reader = std::make_shared<Reader>(*after, counts_.streams);
    // One that was told of later events, by another life of this process, begins anew, too.
    reader->too_late = *after > last_event_ || *after + recent_.size() < last_event_;
    readers_.push_back(reader);
    auto const stream = std::make_shared<http::Stream>();
    stream->next = [this,
                    reader](http::Stream::Due due) -> std::optional<std::vector<http::Frame>> {
        std::vector<http::Frame> frames;
        if (std::exchange(reader->too_late, false)) {
            reader->after = last_event_;
            frames.push_back(std::make_shared<std::string const>(http::sse_event(
                last_event_, "resync", fmt::format(R"({{"number":{}}})", last_event_))));
        }
        auto const missed = static_cast<std::ptrdiff_t>(
            std::min<std::uint64_t>(last_event_ - reader->after, recent_.size()));
        frames.insert(frames.end(), recent_.end() - missed, recent_.end());
        reader->after = last_event_;
        if (frames.empty() && due == http::Stream::Due::beat)
            frames.push_back(std::make_shared<std::string const>(http::sse_heartbeat(last_event_)));
        return frames;
    };
    stream->begin = [reader](std::function<void()> wake) { reader->wake = std::move(wake); };
    http::Response response;
    response.content_type = "text/event-stream";
    response.stream = stream;
    return response;
}

void SimulatedHost::drift() {
    drifted_ = !drifted_;
    ++changes_;
    ++counts_.events;
    auto const sent =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch());
    nlohmann::json event{
        {"number", ++last_event_},
        {"at", to_rfc3339(system_clock().now())},
        {"kind", "drift"},
        {"pf", "0000:01:00.0"},
        {"vf", 0},
        {"detail", fmt::format("VF 0 has spoofchk {}; sent at {:.6f}", !drifted_, sent.count())}};
    for (auto const* const absent :
         {"attachment", "vm", "vm_uuid", "rdma_link", "network", "pool", "reservation", "tenant",
          "token", "operation", "verdict", "because_of", "certificate"})
        event[absent] = nullptr;
    recent_.push_back(
        std::make_shared<std::string const>(http::sse_event(last_event_, "", to_json_text(event))));
    if (recent_.size() > recent_max) recent_.pop_front();
    for (auto const& reader : readers_)
        if (auto const open = reader.lock(); open && open->wake) open->wake();
}

}  // namespace vfmgr::simulation
