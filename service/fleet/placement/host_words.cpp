// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/host_words.hpp"

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"
#include "service/fleet/hosts/host_calls.hpp"

namespace vfmgr::fleet {
namespace {

constexpr int http_precondition_failed = 412;
constexpr int http_unavailable = 503;
constexpr int http_server_error = 500;

http::Request request_about(char const* method, std::string const& name, Revision fence) {
    auto request = http::make_request(method, "/v1/reservations/" + name);
    request.headers[fence_header] = std::to_string(fence);
    return request;
}

std::variant<HostRefusal, Outdated, Unknown> trouble(int status, Error why) {
    if (status == http_precondition_failed) return Outdated{std::move(why)};
    if (status >= http_server_error && status != http_unavailable) return Unknown{std::move(why)};
    return HostRefusal{std::move(why)};
}

// Absent: 2xx.
std::optional<std::variant<HostRefusal, Outdated, Unknown>> failure_of(
    Result<http::Response> const& answer) {
    if (!answer) {
        if (answer.error().problem == Problem::unavailable) return HostRefusal{answer.error()};
        return Unknown{answer.error()};
    }
    auto const success = http::success_of(*answer);
    if (success) return std::nullopt;
    return trouble(answer->status, success.error());
}

}  // namespace

http::Request keep_request(ReservationRecord const& record, std::vector<VfsOfPf> const& pfs,
                           Principal const& who, Revision fence) {
    ReservationSpec spec;
    spec.pool = record.spec.pool;
    spec.network = record.spec.network;
    spec.seconds = record.spec.seconds;
    spec.pfs = pfs;
    spec.count = 0;
    for (auto const& part : pfs) spec.count = static_cast<std::uint16_t>(spec.count + part.count);
    auto request = request_about("PUT", record.spec.name, fence);
    request.headers["content-type"] = "application/json";
    request.body = to_json_text(JsonWriter::encode(spec));
    set_on_behalf(request, who);
    return request;
}

http::Request drop_request(std::string const& name, Principal const& who, Revision fence) {
    auto request = request_about("DELETE", name, fence);
    set_on_behalf(request, who);
    return request;
}

http::Request show_request(std::string const& name, Revision fence) {
    return request_about("GET", name, fence);
}

HostWord word_of(Result<http::Response> const& answer) {
    if (auto why = failure_of(answer))
        return std::visit([](auto& one) { return HostWord(std::move(one)); }, *why);
    auto const document = parse_json(answer->body);
    if (!document) return Unknown{document.error()};
    auto kept = from_json_document<Reservation>(*document, UnknownKeys::ignored);
    if (!kept) return Unknown{kept.error()};
    return std::move(*kept);
}

std::optional<std::variant<HostRefusal, Outdated, Unknown>> trouble_of(
    Result<http::Response> const& answer) {
    auto why = failure_of(answer);
    if (!why) return std::nullopt;
    auto const* const refusal = std::get_if<HostRefusal>(&*why);
    if (refusal && refusal->why.problem == Problem::not_found) return std::nullopt;
    return why;
}

}  // namespace vfmgr::fleet
