// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/drain/drain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "api/types/json.hpp"

namespace vfmgr::fleet {
namespace {

DrainItem* item_of(Drain& drain, std::string const& attachment) {
    auto const found = std::ranges::find(drain.items, attachment, &DrainItem::attachment);
    return found == drain.items.end() ? nullptr : &*found;
}

bool goes_on(Drain const& drain) {
    return drain.state == DrainState::cordoning || drain.state == DrainState::emptying;
}

Drain settled(Drain drain, std::string const& act) {
    drain.act = act;
    bool const empty = std::ranges::all_of(
        drain.items, [](auto const& item) { return item.state == DrainItemState::gone; });
    if (drain.state == DrainState::drained && !empty) drain.state = DrainState::emptying;
    return drain;
}

tl::unexpected<Error> drain_conflict(Drain const& drain, std::string const& why) {
    return fail(Problem::conflict, fmt::format("drain {} of {} {}", drain.id, drain.host, why),
                "vfctl fleet drains shows where it stands");
}

void say(std::vector<std::string>& plan, Drain const& drain, DrainItemState state, OnDrain on_drain,
         char const* what) {
    std::set<std::string> vms;
    std::size_t count = 0;
    for (auto const& item : drain.items) {
        if (item.state != state || item.on_drain != on_drain) continue;
        ++count;
        vms.insert(item.vm);
    }
    if (count > 0)
        plan.push_back(fmt::format("{} attachment{} of VM{} {} {}", count, count == 1 ? "" : "s",
                                   vms.size() == 1 ? "" : "s", fmt::join(vms, ", "), what));
}

}  // namespace

std::vector<DrainAsk> asks_of(Drain const& drain) {
    if (drain.state == DrainState::cordoning) return {CordonAsk{true}};
    if (drain.state == DrainState::cancelling) return {CordonAsk{false}};
    std::vector<DrainAsk> asks;
    if (drain.state != DrainState::emptying) return asks;
    auto moving = static_cast<std::size_t>(
        std::ranges::count(drain.items, DrainItemState::moving, &DrainItem::state));
    for (auto const& item : drain.items) {
        if (item.state != DrainItemState::waiting) continue;
        if (item.on_drain == OnDrain::name)
            asks.emplace_back(NameAsk{item.attachment});
        else if (moving++ < moves_at_once)
            asks.emplace_back(StartMove{item.attachment});
    }
    return asks;
}

Drain cordon_written(Drain drain, std::string const& act) {
    if (drain.state == DrainState::cordoning) drain.state = DrainState::emptying;
    if (drain.state == DrainState::cancelling) drain.state = DrainState::cancelled;
    drain.act = act;
    return drain;
}

Drain observed(Drain drain, std::vector<Standing> const& standing, std::string const& act) {
    if (drain.state != DrainState::emptying && drain.state != DrainState::drained) return drain;
    for (auto& item : drain.items) {
        bool const stands =
            std::ranges::find(standing, item.attachment, &Standing::attachment) != standing.end();
        // What moves is gone from here long before it is proved there.
        if (!stands && item.state != DrainItemState::moving) item.state = DrainItemState::gone;
        if (stands && item.state == DrainItemState::gone) item.state = DrainItemState::waiting;
    }
    for (auto const& one : standing)
        if (!item_of(drain, one.attachment))
            drain.items.push_back({one.attachment, one.vm, one.on_drain, {}, {}, {}});
    drain = settled(std::move(drain), act);
    bool const empty = std::ranges::all_of(
        drain.items, [](auto const& item) { return item.state == DrainItemState::gone; });
    if (empty) drain.state = DrainState::drained;
    return drain;
}

Drain named(Drain drain, std::string const& attachment, std::string const& act) {
    auto* const item = item_of(drain, attachment);
    if (item && item->state == DrainItemState::waiting) item->state = DrainItemState::named;
    drain.act = act;
    return drain;
}

Drain started(Drain drain, Move const& move, std::string const& act) {
    if (auto* const item = item_of(drain, move.source.attachment)) {
        item->state = DrainItemState::moving;
        item->move = move.id;
        item->detail = fmt::format("moves to {}", move.target.host);
    }
    drain.act = act;
    return drain;
}

Drain not_started(Drain drain, std::string const& attachment, Error const& error,
                  std::string const& act) {
    if (auto* const item = item_of(drain, attachment)) {
        item->state = DrainItemState::stays;
        item->detail = error.detail;
    }
    drain.act = act;
    return drain;
}

Drain moved(Drain drain, Move const& move, std::string const& act) {
    auto const found = std::ranges::find(drain.items, move.id, &DrainItem::move);
    if (found == drain.items.end() || !has_ended(move)) return drain;
    if (found->state != DrainItemState::moving) return drain;
    found->state = move.stage == MoveStage::done ? DrainItemState::gone : DrainItemState::stays;
    // The way back attached it anew.
    if (!move.source.attachment.empty()) found->attachment = move.source.attachment;
    found->detail = fmt::format("move {} {}", move.id,
                                move.stage == MoveStage::done       ? "is done"
                                : move.stage == MoveStage::returned ? "returned"
                                                                    : "failed");
    auto const why = std::ranges::find_if(move.marks.rbegin(), move.marks.rend(),
                                          [](auto const& mark) { return !mark.because.empty(); });
    if (why != move.marks.rend()) found->detail += ": " + why->because;
    if (move.stage == MoveStage::failed)
        found->detail += fmt::format("; {}", fmt::join(move.residue, "; "));
    return settled(std::move(drain), act);
}

Result<Drain> tried_again(Drain drain, std::string const& act) {
    bool any = false;
    for (auto& item : drain.items) {
        if (item.state != DrainItemState::stays) continue;
        item.state = DrainItemState::waiting;
        any = true;
    }
    if (!goes_on(drain)) return drain_conflict(drain, "has ended");
    if (!any) return drain_conflict(drain, "has nothing that stays");
    drain.act = act;
    return drain;
}

Result<Drain> cancelled(Drain drain, std::string const& act) {
    if (!goes_on(drain)) return drain_conflict(drain, "has ended");
    drain.state = drain.was_cordoned ? DrainState::cancelled : DrainState::cancelling;
    drain.act = act;
    return drain;
}

std::vector<std::string> sentences_of(Drain const& drain) {
    std::vector<std::string> plan;
    if (drain.state == DrainState::cordoning)
        plan.push_back(
            fmt::format("{} gets nothing new from the fleet: {}", drain.host, drain.reason));
    say(plan, drain, DrainItemState::waiting, OnDrain::move,
        "move: all their queue pairs die, and what runs in the VMs must connect again");
    say(plan, drain, DrainItemState::waiting, OnDrain::name,
        "are named for their orchestrator, and stay until it detaches them or stops the VM");
    say(plan, drain, DrainItemState::named, OnDrain::name, "wait for their orchestrator");
    say(plan, drain, DrainItemState::moving, OnDrain::move, "are on their way");
    for (auto const& item : drain.items)
        if (item.state == DrainItemState::stays)
            plan.push_back(fmt::format("attachment {} of VM {} stays: {}", item.attachment, item.vm,
                                       item.detail));
    if (drain.state == DrainState::drained)
        plan.push_back(fmt::format("{} has no attachments, and stays cordoned", drain.host));
    return plan;
}

template <class F, Of<DrainItem> V>
void fields(F& f, V& item) {
    f.value("attachment", item.attachment);
    f.value("vm", item.vm);
    f.value("on_drain", item.on_drain);
    f.value("state", item.state);
    f.value("move", item.move);
    f.value("detail", item.detail);
}

template <class F, Of<Drain> V>
void fields(F& f, V& drain) {
    f.value("id", drain.id);
    f.value("host", drain.host);
    f.value("reason", drain.reason);
    f.value("requested_by", drain.requested_by);
    f.value("started_at", drain.started_at);
    f.value("state", drain.state);
    f.value("was_cordoned", drain.was_cordoned);
    f.value("items", drain.items);
    f.value("act", drain.act);
}

}  // namespace vfmgr::fleet

namespace vfmgr {
template struct Json<fleet::Drain>;
}  // namespace vfmgr
