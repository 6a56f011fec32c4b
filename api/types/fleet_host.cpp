// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view join_token_form = "vfj1.";
constexpr std::size_t join_id_digits = 8;
constexpr std::size_t sha256_digits = 64;
constexpr std::size_t fleet_host_name_max = 63;
constexpr std::size_t statement_characters_max = 500;
constexpr std::size_t labels_max = 64;
constexpr std::size_t label_characters_max = 63;
constexpr std::size_t partitions_max = 64;
constexpr std::size_t partition_gpus_max = 128;
constexpr std::size_t url_characters_max = 300;
constexpr std::uint16_t host_port = 8470;
constexpr std::uint32_t join_seconds_min = 60;
constexpr std::uint32_t join_seconds_max = 7 * 24 * 3600;

// The same as those of a PF's labels.
bool can_be_a_label(std::string_view text) {
    return is_plain_name(text, "-_./", label_characters_max);
}

void check_labels(JsonReader& reader, std::map<std::string, std::string> const& labels) {
    if (labels.size() > labels_max) return reader.complain("labels", "must be at most 64");
    for (auto const& [key, value] : labels)
        if (!can_be_a_label(key) || (!value.empty() && !can_be_a_label(value)))
            reader.complain("labels/" + pointer_token(key),
                            "must be 1 to 63 letters, digits, '-', '_', '.' and '/'");
}

void check_partitions(JsonReader& reader, std::vector<GpuPartition> const& partitions) {
    if (partitions.size() > partitions_max)
        return reader.complain("partitions", "must be at most 64");
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        auto const place = reader.member_of("partitions", i);
        auto const& [id, gpus] = partitions[i];
        if (!can_be_a_label(id))
            reader.complain(place + "/id",
                            "must be 1 to 63 letters, digits, '-', '_', '.' and '/'");
        if (gpus.empty() || gpus.size() > partition_gpus_max)
            reader.complain(place + "/gpus", "must be 1 to 128 PCI addresses");
        if (std::count_if(partitions.begin(), partitions.end(),
                          [&](GpuPartition const& one) { return one.id == id; }) > 1)
            reader.complain(place + "/id", "is listed twice");
    }
}

}  // namespace

bool can_be_a_fleet_hosts(std::string_view name) {
    auto const plain = [](char one) {
        return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9');
    };
    return !name.empty() && name.size() <= fleet_host_name_max && plain(name.front()) &&
           plain(name.back()) && std::ranges::all_of(name, [&](char one) {
               return plain(one) || one == '-' || one == '.';
           });
}

Result<JoinToken> JoinToken::parse(std::string_view text) {
    auto const refused = [] {
        return fail(Problem::invalid_request, "this is not a join token",
                    "give it whole, as vfctl fleet token printed it: it begins with vfj1.");
    };
    if (!text.starts_with(join_token_form)) return refused();
    text.remove_prefix(join_token_form.size());
    JoinToken token;
    token.id = take_until(text, '.').value_or("");
    token.secret = take_until(text, '.').value_or("");
    token.ca_sha256 = text;
    if (!is_hex(token.id, join_id_digits) || !is_hex(token.secret, sha256_digits) ||
        !is_hex(token.ca_sha256, sha256_digits))
        return refused();
    return token;
}

std::string to_string(JoinToken const& token) {
    return fmt::format("{}{}.{}.{}", join_token_form, token.id, token.secret, token.ca_sha256);
}

template <class F, Of<Statement> V>
void fields(F& f, V& statement) {
    f.value("at", statement.at);
    f.value("by", statement.by);
    f.value("reason", statement.reason);
}

template <class F, Of<GpuPartition> V>
void fields(F& f, V& partition) {
    f.value("id", partition.id);
    f.value("gpus", partition.gpus);
}

template <class F, Of<FleetHostView> V>
void fields(F& f, V& view) {
    f.value("observed_at", view.observed_at);
    f.value("version", view.version);
    f.value("pfs", view.pfs);
    f.value("vfs", view.vfs);
    f.value("free_vfs", view.free_vfs);
    f.value("attachments", view.attachments);
    f.value("vms", view.vms);
}

template <class F, Of<FleetHost> V>
void fields(F& f, V& host) {
    f.value("name", host.name);
    f.value("url", host.url);
    f.value("public_key", host.public_key);
    f.value("state", host.state);
    f.value("reason", host.reason);
    f.value("labels", host.labels);
    f.nullable("rack", host.rack);
    f.nullable("cordoned", host.cordoned);
    f.nullable("fenced", host.fenced);
    f.nullable("leaving", host.leaving);
    f.value("partitions", host.partitions);
    f.value("joined_at", host.joined_at);
    f.value("joined_by", host.joined_by);
    f.nullable("unreachable_since", host.unreachable_since);
    f.nullable("unreachable_why", host.unreachable_why);
    f.nullable("observed", host.observed);
}

template <class F, Of<FleetHostPatch> V>
void fields(F& f, V& patch) {
    f.maybe("labels", patch.labels);
    f.maybe("rack", patch.rack);
    f.maybe("cordoned", patch.cordoned);
    f.maybe("reason", patch.reason);
    f.maybe("partitions", patch.partitions);
}

void check(JsonReader& reader, FleetHostPatch const& patch) {
    if (patch.labels) check_labels(reader, *patch.labels);
    if (patch.rack && !patch.rack->empty() && !can_be_a_label(*patch.rack))
        reader.complain("rack", "must be 1 to 63 letters, digits, '-', '_', '.' and '/', or empty");
    if (patch.reason) check_text(reader, "reason", *patch.reason, statement_characters_max);
    if (patch.reason && !patch.cordoned)
        reader.complain("reason", "is that of cordoned, which is absent");
    if (patch.partitions) check_partitions(reader, *patch.partitions);
}

template <class F, Of<FencedRequest> V>
void fields(F& f, V& request) {
    f.value("evidence", request.evidence);
}

void check(JsonReader& reader, FencedRequest const& request) {
    if (reader.clean("evidence") && request.evidence.empty())
        reader.complain("evidence", "must not be empty: it is all that others can judge by");
    check_text(reader, "evidence", request.evidence, statement_characters_max);
}

template <class F, Of<JoinTokenRequest> V>
void fields(F& f, V& request) {
    f.maybe("host", request.host);
    f.defaulted("expires_in_seconds", request.expires_in_seconds);
}

void check(JsonReader& reader, JoinTokenRequest const& request) {
    if (request.host && !can_be_a_fleet_hosts(*request.host))
        reader.complain("host", rule_of_fleet_host_names);
    if (request.expires_in_seconds < join_seconds_min ||
        request.expires_in_seconds > join_seconds_max)
        reader.complain("expires_in_seconds", "must be from 60 to 604800 (7 days)");
}

template <class F, Of<JoinTokenView> V>
void fields(F& f, V& view) {
    f.value("id", view.id);
    f.nullable("host", view.host);
    f.value("created_by", view.created_by);
    f.value("created_at", view.created_at);
    f.value("expires_at", view.expires_at);
}

template <class F, Of<NewJoinToken> V>
void fields(F& f, V& created) {
    fields(f, created.view);
    f.value("token", created.token);
}

template <class F, Of<JoinRequest> V>
void fields(F& f, V& request) {
    f.value("token", request.token);
    f.value("name", request.name);
    f.value("url", request.url);
    f.value("public_key", request.public_key);
}

void check(JsonReader& reader, JoinRequest const& request) {
    if (reader.clean("token") && !JoinToken::parse(request.token))
        reader.complain("token", "must be one that vfctl fleet token printed");
    if (reader.clean("name") && !can_be_a_fleet_hosts(request.name))
        reader.complain("name", rule_of_fleet_host_names);
    if (reader.clean("public_key") && !is_hex(request.public_key, sha256_digits))
        reader.complain("public_key", "must be a SHA-256 of 64 hexadecimal digits");
    if (reader.clean("url") &&
        (request.url.size() > url_characters_max || !parse_https_url(request.url, host_port)))
        reader.complain("url", "must be such as https://host:8470");
}

template <class F, Of<JoinAnswer> V>
void fields(F& f, V& answer) {
    f.value("fleet", answer.fleet);
    f.value("host", answer.host);
    f.value("urls", answer.urls);
    f.value("ca", answer.ca);
}

template struct Json<Statement>;
template struct Json<GpuPartition>;
template struct Json<FleetHost>;
template struct Json<FleetHostPatch>;
template struct Json<FencedRequest>;
template struct Json<JoinTokenRequest>;
template struct Json<JoinTokenView>;
template struct Json<NewJoinToken>;
template struct Json<JoinRequest>;
template struct Json<JoinAnswer>;

}  // namespace vfmgr
