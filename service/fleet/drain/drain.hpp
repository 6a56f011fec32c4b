// SPDX-License-Identifier: Apache-2.0
// A host that is to become free of attachments: the document drains/<id> in etcd. It gets nothing
// new first. Then each attachment moves, or is named for the orchestrator, which moves or stops the
// VM itself. Nothing is detached from a VM for a drain alone. Pure, as drain/move.hpp is.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "service/fleet/drain/move.hpp"

namespace vfmgr::fleet {

enum class OnDrain { name, move };

enum class DrainItemState {
    waiting,  // for its turn
    named,    // an event said that its VM must leave; waits until the attachment is gone
    moving,
    gone,
    stays,  // its move returned or failed; `detail` says why
};

struct DrainItem {
    std::string attachment;
    std::string vm;  // its name
    OnDrain on_drain = OnDrain::name;
    DrainItemState state = DrainItemState::waiting;
    std::string move;  // id of its latest move; empty: none
    std::string detail;
    bool operator==(DrainItem const&) const = default;
};

// drained: no attachment is left; the host stays cordoned. cancelling: it is to be as it was
// before; what moves goes on.
enum class DrainState { cordoning, emptying, drained, cancelling, cancelled };

struct Drain {
    std::string id;
    std::string host;
    std::string reason;
    std::string requested_by;
    Time started_at{};
    DrainState state = DrainState::cordoning;
    bool was_cordoned = false;  // before: then a cancelled drain leaves it so
    std::vector<DrainItem> items;
    std::string act;  // of the transaction that wrote this
    bool operator==(Drain const&) const = default;
};

// What to do now; each can be done twice.
struct CordonAsk {
    bool cordoned = true;
    bool operator==(CordonAsk const&) const = default;
};
struct NameAsk {  // emit the event, then named()
    std::string attachment;
    bool operator==(NameAsk const&) const = default;
};
struct StartMove {  // write the move, and this drain after started(), in one transaction
    std::string attachment;
    bool operator==(StartMove const&) const = default;
};
using DrainAsk = std::variant<CordonAsk, NameAsk, StartMove>;

inline constexpr std::size_t moves_at_once = 4;  // of a drain: each interrupts a VM
[[nodiscard]] std::vector<DrainAsk> asks_of(Drain const& drain);

// An attachment that the host has now.
struct Standing {
    std::string attachment;
    std::string vm;
    OnDrain on_drain = OnDrain::name;
};
// What CordonAsk asked for is written.
[[nodiscard]] Drain cordon_written(Drain drain, std::string const& act);
// `standing`: all of the host's, from a current report; never from a stale one.
[[nodiscard]] Drain observed(Drain drain, std::vector<Standing> const& standing,
                             std::string const& act);
[[nodiscard]] Drain named(Drain drain, std::string const& attachment, std::string const& act);
[[nodiscard]] Drain started(Drain drain, Move const& move, std::string const& act);
// A move that could not be planned, or that ended.
[[nodiscard]] Drain not_started(Drain drain, std::string const& attachment, Error const& error,
                                std::string const& act);
[[nodiscard]] Drain moved(Drain drain, Move const& move, std::string const& act);
// Tries those again that stay. conflict: none does, or the drain has ended.
[[nodiscard]] Result<Drain> tried_again(Drain drain, std::string const& act);
// conflict: it has ended.
[[nodiscard]] Result<Drain> cancelled(Drain drain, std::string const& act);

// The plan, and where it stands: "3 attachments move: queue pairs of vm1, vm2 die", …
[[nodiscard]] std::vector<std::string> sentences_of(Drain const& drain);

}  // namespace vfmgr::fleet

namespace vfmgr {
extern template struct Json<fleet::Drain>;
}  // namespace vfmgr
