// SPDX-License-Identifier: Apache-2.0
// What the keeper asks hosts, one question at a time of each, and what follows from their answers.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"
#include "service/fleet/keeper/keeper.hpp"
#include "service/fleet/membership.hpp"
#include "service/log.hpp"

namespace vfmgr::fleet {
namespace {

constexpr auto identities_path = "/v1/identities";
// Hosts that are asked at the same time: slow ones take no more than these places.
constexpr std::size_t asked_max = 32;
constexpr std::chrono::milliseconds first_pause{2'000};
constexpr std::chrono::milliseconds longest_pause{300'000};

std::string etag_of(http::Response const& response) {
    auto const found = response.headers.find("etag");
    return found == response.headers.end() ? std::string() : found->second;
}

// Whether the host's attachment, as it answered, has the identity.
bool has_it(std::string const& attachment, std::string_view body, Identity const& identity) {
    HostDocuments documents;
    if (!put_item(documents, Collection::attachments, attachment, body, {},
                  Time{std::chrono::seconds(1)}))
        return false;
    return std::ranges::any_of(held_by(documents),
                               [&](auto const& held) { return held.identity == identity; });
}

// A claim that the host is to give up, and of which it has answered to no document yet.
bool awaits_answer(Snapshot const& part, std::string const& host, std::uint64_t generation) {
    return std::ranges::any_of(part.claims, [&](auto const& kept) {
        return kept.claim.state == ClaimState::giving_up && kept.claim.from == host &&
               kept.revision > generation;
    });
}

}  // namespace

// --- answers ---

bool Keeper::take_answers(Revision fence) {
    std::deque<Answer> answers;
    {
        std::lock_guard const lock(mutex_);
        answers.swap(answers_);
    }
    bool taken = true;
    while (taken && !answers.empty()) {
        auto const answer = std::move(answers.front());
        answers.pop_front();
        auto const found = hosts_.find(answer.host);
        if (found == hosts_.end() || found->second.number != answer.number) continue;
        taken = take(fence, answer.host, found->second, answer.response);
    }
    std::lock_guard const lock(mutex_);
    answers_.insert(answers_.begin(), answers.begin(), answers.end());
    return taken;
}

bool Keeper::take(Revision fence, std::string const& name, Host& host,
                  Result<http::Response> const& answer) {
    auto const asked = std::move(*host.asked);
    host.asked.reset();
    auto const response = answer ? http::success_of(*answer) : answer;
    auto const* const confirm = std::get_if<Confirm>(&asked);
    if (confirm && answer && answer->status == 404) return true;  // it has ended
    if (!response) {
        if (confirm) searched_.reset();  // it is asked again
        failed(name, host, response.error(), std::holds_alternative<Push>(asked));
        return true;
    }
    if (!confirm) {
        took(name, host, *response);
        return true;
    }
    return !has_it(confirm->attachment, response->body, confirm->identity) ||
           confirmed(fence, name, *confirm);
}

// What has an owner is no other host's, whoever else has it. What nobody owns is contested only if
// two hosts have it.
bool Keeper::confirmed(Revision fence, std::string const& name, Confirm const& one) {
    auto& hosts = contested_[one.identity];
    hosts.insert(name);
    bool const owned =
        claim_of(fleet_, one.identity) != nullptr || block_of(fleet_, one.identity) != nullptr;
    if (!owned && hosts.size() < 2) return true;
    for (auto const& host : std::exchange(hosts, {})) {
        if (!quarantine(fence, host, one.sentence)) return false;
        hosts_.erase(host);
    }
    return true;
}

// What a GET or a PUT of its identities answers is what it has, durably.
void Keeper::took(std::string const& name, Host& host, http::Response const& response) {
    auto const document = parse_json(response.body);
    auto view = document ? from_json_document<IdentitiesView>(*document, UnknownKeys::ignored)
                         : Result<IdentitiesView>(fail(document.error()));
    if (!view) return failed(name, host, view.error(), false);
    host.has = Has{std::move(view->identities), etag_of(response)};
    host.refused_with.reset();
}

void Keeper::failed(std::string const& name, Host& host, Error const& error, bool pushed) {
    auto const is_new = host.trouble.empty();
    host.pause = std::clamp(host.pause * 2, first_pause, longest_pause);
    host.again = seams_.clock.steady_now() + host.pause;
    bool const refused = pushed && error.problem == Problem::conflict;
    // Whether it took them is not known, or another one wrote meanwhile.
    if (!refused) {
        host.has.reset();
        host.refused_with.reset();
    }
    bool const silent = error.problem == Problem::unavailable ||
                        error.problem == Problem::timed_out ||
                        error.problem == Problem::precondition_failed;
    if (silent) return;
    host.trouble = error.detail;
    if (is_new)
        log(Severity::warning, "a host does not take its identities",
            {{"host", name}, {"detail", error.detail}, {"remedy", error.remedy}});
}

// --- questions ---

// What a slow host is asked keeps its place, and the others come in turns.
void Keeper::send(Revision fence) {
    auto under_way = static_cast<std::size_t>(std::ranges::count_if(
        hosts_, [](auto const& one) { return one.second.asked.has_value(); }));
    auto at = hosts_.upper_bound(last_asked_);
    for (std::size_t i = 0; i < hosts_.size() && under_way < asked_max; ++i, ++at) {
        if (at == hosts_.end()) at = hosts_.begin();
        auto& [name, host] = *at;
        auto asked = next_ask(name, host);
        if (!asked) continue;
        last_asked_ = name;
        ++under_way;
        ask(fence, name, host, std::move(*asked));
    }
}

std::optional<Keeper::Asked> Keeper::next_ask(std::string const& name, Host& host) {
    auto const* const part = look_.view->find(name);
    bool const known = part && part->documents.pfs->observed_at != Time{};
    if (host.away || host.asked || !known || seams_.clock.steady_now() < host.again)
        return std::nullopt;
    if (!host.has) return Read{};
    if (!host.suspects.empty()) {
        auto suspect = std::move(host.suspects.back());
        host.suspects.pop_back();
        return suspect;
    }
    auto desired = desired_of(name);
    auto const generation = host.has->document.generation.value_or(0);
    auto const* const record = find_record(look_.state->hosts, name);
    bool const leaving = record && record->record.leaving;
    // It answers to what was asked before its last answer, too.
    bool const owes_answer =
        awaits_answer(part_of(name), name, generation) ||
        (leaving && generation < static_cast<std::uint64_t>(record->mod_revision));
    bool const pushes = difference(desired, host.has->document, host.confirmed).pushes() ||
                        (generation < desired.generation && owes_answer);
    if (!pushes) {
        host.pause = {};
        host.trouble.clear();
        return std::nullopt;
    }
    if (!leaving && awaits_blocks(name, host, *part)) return std::nullopt;
    host.refused_with = part->documents.attachments;
    return Push{std::move(desired)};
}

// Until now it has handed out what it wanted: that ends when it has its blocks, or there are none.
bool Keeper::awaits_blocks(std::string const& name, Host const& host, HostPart const& part) {
    if (host.has->document.generation) return false;
    auto const missing =
        missing_of(part.documents, look_.state->identities->record.ranges, part_of(name), name);
    return std::ranges::any_of(
        missing, [&](KindUse const& use) { return !short_.contains(short_key(name, use)); });
}

void Keeper::ask(Revision fence, std::string const& name, Host& host, Asked asked) {
    auto const* const record = find_record(look_.state->hosts, name);
    if (!record) return;
    http::Request request = http::make_request("GET", identities_path);
    if (auto const* const confirm = std::get_if<Confirm>(&asked))
        request = http::make_request("GET", "/v1/attachments/" + confirm->attachment);
    if (auto const* const push = std::get_if<Push>(&asked)) {
        request = http::make_request("PUT", identities_path,
                                     JsonWriter::encode(IdentitiesView{push->document, {}}));
        if (!host.has->etag.empty()) request.headers["if-match"] = host.has->etag;
        // What only reads has none: where etcd was restored, all fences are lower than the hosts'.
        request.headers[fence_header] = std::to_string(fence);
    }
    host.asked = std::move(asked);
    host.number = ++numbers_;
    seams_.ask(record->record, request,
               [this, name, number = host.number](Result<http::Response> response) {
                   std::lock_guard const lock(mutex_);
                   answers_.push_back({name, number, std::move(response)});
                   news_ = true;
                   wake_.notify_all();
               });
}

}  // namespace vfmgr::fleet
