// SPDX-License-Identifier: Apache-2.0
// Carries out whose identities are: gives hosts blocks before they run out, has each host take what
// etcd says it may hand out, notes what hosts have given up, and quarantines a host that has what
// is not its own. Only the replica that leads does it; the others only say what is short. One
// thread of its own, which waits for etcd, and for no host.
//
// It keeps nothing that must survive: a new leader reads hosts and etcd, and goes on from there.
// Nothing is done before an admin has given the fleet ranges.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "api/http/http.hpp"
#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/hosts/followers.hpp"
#include "service/fleet/keeper/use.hpp"
#include "service/fleet/registry.hpp"
#include "service/fleet/writer.hpp"

namespace vfmgr::fleet {

class Keeper {
  public:
    using Answered = std::function<void(Result<http::Response>)>;
    struct Seams {
        Etcd& etcd;  // read before a host is taken to be ahead of it
        Registry& registry;
        Writer& writer;
        Clock& clock;
        // Whether this replica leads, and by what. Any thread, as the next two.
        std::function<std::optional<Revision>()> fence;
        std::function<std::shared_ptr<InventoryView const>()> inventory;
        std::function<std::shared_ptr<Reaches const>()> reaches;
        // Sends a request to a host. `answered` is called once, on any thread, then or later; not
        // at all after a stop.
        std::function<void(HostRecord const& host, http::Request const& request, Answered answered)>
            ask;
        // A host was quarantined, with the reason. On the keeper's thread.
        std::function<void(std::string const& host, std::string const& reason)> quarantined;
    };
    explicit Keeper(Seams seams);
    ~Keeper();  // stop()
    Keeper(Keeper const&) = delete;
    Keeper& operator=(Keeper const&) = delete;

    void start();
    void stop();
    // The registry or the inventory has some, or this replica was elected. Any thread.
    void news();
    // What admins have to know, one sentence each: which hosts get no more blocks, and which don't
    // take what they are given. Any thread.
    [[nodiscard]] std::vector<std::string> problems() const;
    // What the thread does when there is news, and now and then. Tests call it without start().
    void turn();

  private:
    // What a host has, as it said itself; `etag` is of that.
    struct Has {
        Identities document;
        std::string etag;
    };
    struct Read {};
    struct Push {
        Identities document;
    };
    // Whether the attachment still has what is another host's.
    struct Confirm {
        Identity identity;
        std::string attachment;
        std::string sentence;
    };
    using Asked = std::variant<Read, Push, Confirm>;
    struct Answer {
        std::string host;
        std::uint64_t number = 0;
        Result<http::Response> response;
    };
    // What it was found from which identities a host lacks.
    struct Judged {
        SharedPart<PfFacts> pfs{};
        SharedPart<AttachmentFacts> attachments{};
        SharedPart<NetworkFacts> networks{};
        std::uint64_t fleet = 0;
        Revision ranges = 0;
        bool operator==(Judged const&) const = default;
    };
    // There is no block for a host, as of then.
    struct Short {
        std::string sentence;
        std::uint64_t fleet = 0;
        Revision ranges = 0;
        bool operator==(Short const&) const = default;
    };
    struct Host {
        Revision joined = 0;  // of its record: a host that joins again is another one
        std::optional<Has> has{};
        std::uint64_t confirmed = 0;  // the highest generation that it acknowledged
        bool away = false;
        // What the inventory showed when it was last compared.
        std::shared_ptr<IdentitiesPart const> observed{};
        SharedPart<AttachmentFacts> refused_with{};  // its attachments when it refused
        std::optional<Asked> asked{};                // under way
        std::uint64_t number = 0;                    // of that
        Deadline again{};                            // not before
        std::chrono::milliseconds pause{0};          // after the next failure
        std::string trouble{};                       // why it does not take what it is given
        std::vector<Confirm> suspects{};             // to be confirmed
        std::vector<KindUse> missing{};              // kinds of which it has not enough
        Judged judged{};
    };
    using Hosts = std::map<std::string, Host, std::less<>>;
    // One look at what is known.
    struct Look {
        std::shared_ptr<State const> state;
        std::shared_ptr<InventoryView const> view;
        std::shared_ptr<Reaches const> reaches;
    };

    [[nodiscard]] Deadline wait_and_turn();
    [[nodiscard]] bool look();
    void keep_active_hosts();
    void note_changes(std::string const& name, Host& host);
    void note_problems();
    [[nodiscard]] Deadline write_deadline() const;
    [[nodiscard]] Snapshot const& part_of(std::string const& host);
    [[nodiscard]] Identities desired_of(std::string const& name);
    [[nodiscard]] static std::string short_key(std::string const& host, KindUse const& use);

    // --- etcd; false: the turn ends, since etcd does not take it ---
    void find_missing();
    [[nodiscard]] bool grant(Revision fence);
    [[nodiscard]] bool grant(Revision fence, std::string const& name, KindUse const& use,
                             std::size_t& budget);
    [[nodiscard]] bool note_given_up(Revision fence);
    [[nodiscard]] bool free_leaving(Revision fence);
    [[nodiscard]] bool note_confirmed(Revision fence);
    [[nodiscard]] bool quarantine(Revision fence, std::string const& name,
                                  std::string const& reason);
    [[nodiscard]] bool judge(Revision fence);
    [[nodiscard]] Result<std::string> contradiction_of(std::string const& name, Host& host);
    void find_suspects();

    // --- hosts ---
    [[nodiscard]] bool take_answers(Revision fence);
    [[nodiscard]] bool take(Revision fence, std::string const& name, Host& host,
                            Result<http::Response> const& answer);
    [[nodiscard]] bool confirmed(Revision fence, std::string const& name, Confirm const& one);
    void took(std::string const& name, Host& host, http::Response const& response);
    void failed(std::string const& name, Host& host, Error const& error, bool pushed);
    void send(Revision fence);
    [[nodiscard]] std::optional<Asked> next_ask(std::string const& name, Host& host);
    [[nodiscard]] bool awaits_blocks(std::string const& name, Host const& host,
                                     HostPart const& part);
    void ask(Revision fence, std::string const& name, Host& host, Asked asked);

    Seams const seams_;
    // --- of the thread ---
    Look look_;
    std::optional<Revision> led_by_;
    Hosts hosts_;
    Snapshot fleet_;  // of look_
    Table<BlockRecord> fleet_blocks_;
    Table<ClaimRecord> fleet_claims_;
    std::map<std::string, Snapshot, std::less<>> parts_;  // of fleet_, by host
    std::map<std::string, Short> short_;                  // by short_key()
    // By what nobody owns: who has it, by its own word.
    std::map<Identity, std::set<std::string>> contested_;
    std::shared_ptr<InventoryView const> searched_;  // for suspects
    std::uint64_t searched_in_ = 0;                  // a number of fleet_
    std::uint64_t fleets_ = 0;                       // numbers fleet_
    std::uint64_t numbers_ = 0;                      // of requests
    std::string last_asked_;
    mutable std::mutex mutex_;  // guards the next four
    std::condition_variable wake_;
    std::deque<Answer> answers_;
    bool news_ = false;
    std::vector<std::string> problems_;
    std::unique_ptr<OwnThread> thread_;
};

}  // namespace vfmgr::fleet
