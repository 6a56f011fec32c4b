// SPDX-License-Identifier: Apache-2.0
#include "service/cli/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/os/file.hpp"
#include "api/types/attachment.hpp"
#include "api/types/check.hpp"
#include "api/types/daemon.hpp"
#include "api/types/event.hpp"
#include "api/types/firmware.hpp"
#include "api/types/fleet.hpp"
#include "api/types/fleet_host.hpp"
#include "api/types/fleet_identities.hpp"
#include "api/types/fleet_reservation.hpp"
#include "api/types/host_tree.hpp"
#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"
#include "api/types/tenant.hpp"
#include "api/types/vm_info.hpp"
#include "api/types/vm_topology.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"
#include "service/cli/yaml.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t default_port = 8470;

Result<http::Target> target_of(Server const& server) {
    if (!is_remote(server))
        return http::UnixTarget{server.address.substr(std::string_view("unix:").size())};
    VFMGR_TRY(HostPort const place, parse_url(server.address));
    auto const& with = server.credentials;
    return http::TlsTarget{.host = place.host,
                           .port = place.port,
                           .ca_file = with.ca_file,
                           .fingerprint = with.fingerprint,
                           .certificate_file = with.client_certificate,
                           .key_file = with.client_key};
}

// Whoever reads a token may do what its owner may.
void warn_of_readers(std::string const& file, Options const& options) {
    struct stat status{};
    if (::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0)
        print_sentence(fmt::format("every user of this machine can read the token in {}; change "
                                   "that with: chmod o= {}",
                                   file, file),
                       options);
}

std::optional<std::chrono::seconds> pause_of(http::Response const& response) {
    if (response.status != 429) return std::nullopt;
    auto const header = response.headers.find("retry-after");
    std::uint32_t seconds = 1;
    if (header != response.headers.end())
        std::from_chars(header->second.data(), header->second.data() + header->second.size(),
                        seconds);
    return std::chrono::seconds(std::max(seconds, 1U));
}

http::Request message_of(ApiRequest const& request) {
    http::Request message;
    message.method = request.method;
    message.path = request.path;
    message.query = request.query;
    message.headers = request.headers;
    message.body = request.body;
    return message;
}

constexpr std::size_t page_items_max = 500;  // what a server gives if no limit is named

Error no_list(std::string detail) {
    return {Problem::internal, std::move(detail),
            "check that this is vfmgrd, and that its version matches vfctl's"};
}

// Returns {"items": […], "next": …}.
Result<nlohmann::json> page_in(http::Response const& response, std::string const& path) {
    VFMGR_TRY(auto page, json_of(response));
    if (!page.is_object() || !page.contains("items") || !page["items"].is_array())
        return fail(no_list(fmt::format("the answer to GET {} is not a list", path)));
    return page;
}

std::string trimmed(std::string text) {
    constexpr auto blanks = " \t\r\n";
    text.erase(text.find_last_not_of(blanks) + 1);
    text.erase(0, text.find_first_not_of(blanks));
    return text;
}

}  // namespace

Result<HostPort> parse_url(std::string const& url) {
    auto const refuse = [&] {
        return fail(Problem::invalid_request, fmt::format("'{}' is not an address of vfmgrd", url),
                    "give one such as https://host:8470; without TLS the API is on its unix "
                    "socket only");
    };
    std::string_view rest = url;
    if (rest.ends_with('/')) rest.remove_suffix(1);
    auto const place = parse_https_url(rest, default_port);
    if (!place) return refuse();
    return *place;
}

Result<std::string> read_text(std::string const& file) {
    if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
    if (auto text = read_file(file)) return std::move(*text);
    return fail(Problem::invalid_request, fmt::format("can't read {}", file),
                "name a readable file, or '-' for standard input");
}

Result<std::string> read_document(std::string const& file) {
    VFMGR_TRY(auto const text, read_text(file));
    return json_of_yaml(text);
}

Result<std::string> read_token(std::string const& file) {
    VFMGR_TRY(std::string token, read_text(file));
    return trimmed(std::move(token));
}

Result<Connection> Connection::open(Options const& options) {
    VFMGR_TRY(auto const server, server_of(options));
    VFMGR_TRY(http::Target target, target_of(server));
    http::Client client(std::move(target));
    if (is_remote(server) && !server.credentials.token_file.empty()) {
        VFMGR_TRY(std::string token, read_token(server.credentials.token_file));
        warn_of_readers(server.credentials.token_file, options);
        client.set_bearer_token(std::move(token));
    }
    return Connection(std::move(client));
}

Result<http::Response> Connection::follow(ApiRequest const& request,
                                          std::function<bool(std::string_view)> const& take) const {
    return client_.follow(message_of(request), request.timeout, take);
}

Result<http::Response> Connection::exchange(ApiRequest const& request) const {
    auto const message = message_of(request);
    auto const until = std::chrono::steady_clock::now() + request.patience;
    for (;;) {
        VFMGR_TRY(http::Response response, client_.send(message, request.timeout));
        auto const pause = pause_of(response);
        if (!pause || std::chrono::steady_clock::now() + *pause > until) return response;
        // Retry-After is a time; no event announces its end.
        ::poll(nullptr, 0, static_cast<int>(std::chrono::milliseconds(*pause).count()));
    }
}

Result<http::Response> Connection::send(ApiRequest const& request) const {
    VFMGR_TRY(http::Response response, exchange(request));
    if (response.status >= 200 && response.status < 300) return response;
    return fail(problem_of(response));
}

Result<http::Response> Connection::list(ApiRequest request, std::size_t items_max) const {
    auto left = items_max;
    auto const ask = [&] {
        if (left < page_items_max) request.query["limit"] = std::to_string(left);
        return send(request);
    };
    VFMGR_TRY(http::Response answer, ask());
    VFMGR_TRY(auto whole, page_in(answer, request.path));
    if (whole["next"].is_null()) return answer;
    auto& items = whole["items"];
    while (whole["next"].is_string() && items.size() < items_max) {
        left = items_max - items.size();
        auto const cursor = whole["next"].get<std::string>();
        request.query["cursor"] = cursor;
        VFMGR_TRY(auto const response, ask());
        VFMGR_TRY(auto page, page_in(response, request.path));
        // A server that goes round in circles would be followed for ever.
        bool const goes_on = page["next"].is_string();
        if (goes_on && (page["items"].empty() || page["next"] == cursor))
            return fail(no_list(fmt::format("the list {} never ends", request.path)));
        std::ranges::move(page["items"], std::back_inserter(items));
        whole["next"] = std::move(page["next"]);
    }
    answer.body = to_json_text(whole) + "\n";
    return answer;
}

Error problem_of(http::Response const& response) {
    auto const document = nlohmann::json::parse(response.body, nullptr, false);
    if (document.is_object() && document.contains("code")) return error_from_json(document);
    return {Problem::internal,
            fmt::format("the server answered {} without a reason", response.status),
            "check that this is vfmgrd, and see its log"};
}

Result<nlohmann::json> json_of(http::Response const& response) {
    auto document = nlohmann::json::parse(response.body, nullptr, false);
    if (!document.is_discarded()) return document;
    return fail(Problem::internal, "the server's answer is not JSON",
                "check that this is vfmgrd, and that its version matches vfctl's");
}

template <class T>
Result<T> value_of(http::Response const& response) {
    VFMGR_TRY(auto const document, json_of(response));
    auto value = from_json_document<T>(document, UnknownKeys::ignored);
    if (value) return value;
    return fail(
        Problem::internal,
        fmt::format("the server's answer is not what was expected: {}", value.error().detail),
        "check that vfctl and vfmgrd have the same version");
}

template Result<About> value_of(http::Response const&);
template Result<Attachment> value_of(http::Response const&);
template Result<Certificate> value_of(http::Response const&);
template Result<CheckReport> value_of(http::Response const&);
template Result<DryRun> value_of(http::Response const&);
template Result<HostTree> value_of(http::Response const&);
template Result<FleetHost> value_of(http::Response const&);
template Result<FleetReservation> value_of(http::Response const&);
template Result<NewJoinToken> value_of(http::Response const&);
template Result<FirmwareView> value_of(http::Response const&);
template Result<InteropWindow> value_of(http::Response const&);
template Result<FleetView> value_of(http::Response const&);
template Result<IdentitiesView> value_of(http::Response const&);
template Result<Network> value_of(http::Response const&);
template Result<Pool> value_of(http::Response const&);
template Result<Reservation> value_of(http::Response const&);
template Result<Tenant> value_of(http::Response const&);
template Result<NewTokenView> value_of(http::Response const&);
template Result<Operation> value_of(http::Response const&);
template Result<PfView> value_of(http::Response const&);
template Result<RdmaLink> value_of(http::Response const&);
template Result<VfView> value_of(http::Response const&);
template Result<VmInfo> value_of(http::Response const&);
template Result<VmTopology> value_of(http::Response const&);
template Result<ItemList<Attachment>> value_of(http::Response const&);
template Result<ItemList<AuditEntry>> value_of(http::Response const&);
template Result<ItemList<FleetHost>> value_of(http::Response const&);
template Result<ItemList<FleetIdentity>> value_of(http::Response const&);
template Result<ItemList<JoinTokenView>> value_of(http::Response const&);
template Result<ItemList<FirmwareView>> value_of(http::Response const&);
template Result<ItemList<Event>> value_of(http::Response const&);
template Result<ItemList<Network>> value_of(http::Response const&);
template Result<ItemList<Pool>> value_of(http::Response const&);
template Result<ItemList<Reservation>> value_of(http::Response const&);
template Result<ItemList<Tenant>> value_of(http::Response const&);
template Result<ItemList<Operation>> value_of(http::Response const&);
template Result<ItemList<PfTraffic>> value_of(http::Response const&);
template Result<ItemList<PfView>> value_of(http::Response const&);
template Result<ItemList<RdmaLink>> value_of(http::Response const&);
template Result<ItemList<RdmaName>> value_of(http::Response const&);
template Result<ItemList<TokenView>> value_of(http::Response const&);
template Result<ItemList<Verification>> value_of(http::Response const&);
template Result<ItemList<VfView>> value_of(http::Response const&);
template Result<ItemList<VmInfo>> value_of(http::Response const&);

}  // namespace vfmgr
