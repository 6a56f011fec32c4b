// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/begin.hpp"

#include <fmt/format.h>

#include "api/http/ca_pem.hpp"
#include "api/os/file.hpp"
#include "api/types/fleet.hpp"
#include "api/types/text.hpp"
#include "service/fleet/contacts.hpp"
#include "service/fleet/etcd/election.hpp"
#include "service/fleet/hosts/host_calls.hpp"
#include "service/fleet/inventory/fleet_event_streams.hpp"
#include "service/fleet/keeper/keeper.hpp"
#include "service/fleet/membership.hpp"
#include "service/fleet/metrics.hpp"
#include "service/fleet/routes/routes.hpp"
#include "service/log.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::seconds founding_again{2};
// How long a host may take to answer about its identities: it waits for operations on its VFs.
constexpr std::chrono::milliseconds keeper_patience{20'000};

// Who this replica is, by the certificate that it shows.
Result<Self> self_of(Config const& config, Time now) {
    VFMGR_TRY(auto const facts, http::read_certificate(config.tls.certificate_file));
    Self self;
    for (auto const& name : facts.client_names)
        if (auto const replica = parse_replica_uri(name)) self.fleet = replica->fleet;
    if (self.fleet.empty())
        return fail(Problem::invalid_request,
                    fmt::format("{} is no certificate of a replica", config.tls.certificate_file),
                    "use one that vfctl fleet init made: its URI is vfmgr://FLEET/replica/NAME");
    auto ca = read_file(config.ca_file);
    if (!ca)
        return fail(Problem::not_found, fmt::format("{} can't be read", config.ca_file),
                    "set listen.tls.ca_file in fleetd.toml to the fleet's CA");
    VFMGR_TRY(self.ca_sha256, http::ca_fingerprint(*ca));
    self.ca = std::move(*ca);
    self.ca_file = config.ca_file;
    self.name = config.name;
    self.url = config.url;
    self.started_at = now;
    return self;
}

std::string presence_of(Self const& self) {
    return record_text(ReplicaRecord{self.url, VFMGR_VERSION, self.started_at});
}

// Everything behind the API, in the order in which it begins.
class Fleet {
  public:
    Fleet(Self self, Config const& config, std::unique_ptr<Etcd> etcd, Front const& front,
          Clock& clock)
        : self_(std::move(self)),
          certificate_files_{config.tls.certificate_file, config.ca_file},
          front_(front),
          clock_(clock),
          etcd_(std::move(etcd)),
          pool_({.certificate_file = config.tls.certificate_file, .key_file = config.tls.key_file},
                [](std::string const& what) {
                    log(Severity::error, "a bug in vfmgr-fleetd", {{"detail", what}});
                }),
          streams_(config.events, {}, front.io_post, clock),
          registry_(*etcd_, clock,
                    [this](std::shared_ptr<State const> const& state) {
                        keeper_.news();
                        // Marks are written all the time, of hosts that are followed already.
                        if (state->hosts == known_hosts_) return;
                        streams_.change(
                            [state, before = std::exchange(known_hosts_, state->hosts)](
                                FleetEvents& events) { put_hosts(events, before, state->hosts); });
                        followers_.follow(state->hosts, state->marks);
                    }),
          writer_(*etcd_, registry_,
                  {clock, [this](Deadline then) { return stop_.wait_until(then); }}),
          keeper_(
              {*etcd_, registry_, writer_, clock, [this] { return election_.fence(); },
               [this] { return inventory_.snapshot(); }, [this] { return followers_.reaches(); },
               [this](HostRecord const& host, http::Request const& request,
                      Keeper::Answered answered) { ask_host(host, request, std::move(answered)); },
               log_quarantine}),
          contacts_({registry_, writer_, clock, self_.fleet,
                     [this] { return followers_.reaches(); }, log_quarantine}),
          followers_(
              {pool_, inventory_, clock,
               [this](std::uint32_t host, http::SentEvent const& event) { pass_on(host, event); },
               [this](std::string const& host, Contact const& contact, KnownEvent const& seen) {
                   contacts_.said(host, contact, seen);
               },
               [this](std::string const& host, std::string const& why) {
                   contacts_.contradicts(host, why);
               },
               [this] { keeper_.news(); }}),
          presence_(*etcd_, clock, {keys::of(keys::replicas, self_.name), presence_of(self_)}),
          election_(*etcd_, clock,
                    {std::string(keys::leader), record_text(LeaderRecord{self_.name, self_.url})},
                    {.elected =
                         [this](Revision fence) {
                             log(Severity::notice, "this replica schedules",
                                 {{"fence", std::to_string(fence)}});
                             keeper_.news();
                         },
                     .lost = [] { log(Severity::notice, "this replica no longer schedules"); }}),
          scheduler_({[this] { return registry_.state(); },
                      writer_,
                      [this] { return inventory_.snapshot(); },
                      [this] { return election_.fence(); },
                      [this](Revision revision, Deadline deadline) {
                          return registry_.wait_for(revision, deadline);
                      },
                      [this](HostRecord const& host, http::Request const& request,
                             std::chrono::milliseconds timeout) {
                          return send_to(pool_, host, request, timeout);
                      },
                      {clock, [this](Deadline then) { return stop_.wait_until(then); }}}),
          parts_{self_, registry_, writer_,    inventory_, followers_,
                 pool_, clock_,    scheduler_, keeper_} {}

    ~Fleet() {
        stop_.request();
        founding_.reset();
        scheduler_.stop();
        keeper_.stop();
        election_.stop();
        presence_.stop();
        registry_.stop();
        followers_.stop();
        contacts_.stop();
        pool_.stop();
    }
    Fleet(Fleet const&) = delete;
    Fleet& operator=(Fleet const&) = delete;

    void start() {
        followers_.start();
        contacts_.start();
        registry_.start();
        scheduler_.start();
        founding_ = std::make_unique<OwnThread>([this] { return found(); }, [] {});
    }

    [[nodiscard]] std::vector<std::string> not_ready() const {
        auto const state = registry_.state();
        if (state->stale_since) return {"etcd"};
        if (!state->fleet || !check_fleet(*state, self_.fleet, self_.ca)) return {"fleet"};
        // Each host was read since the start, or does not answer.
        auto const view = inventory_.snapshot();
        for (auto const& [name, host] : *state->hosts) {
            auto const* const part = view->find(name);
            bool const tried = part && (part->stale ? part->stale->why == StaleWhy::unreachable
                                                    : part->documents.pfs->observed_at != Time{});
            if (!tried) return {"hosts"};
        }
        return {};
    }
    [[nodiscard]] Self const& self() const { return self_; }
    [[nodiscard]] std::vector<FleetRoute> routes() const {
        return all_fleet_routes(parts_, front_.workers, streams_, {*etcd_, certificate_files_},
                                front_.io_post);
    }
    [[nodiscard]] MetricFamilies metrics() const {
        return fleet_metrics({*registry_.state(), *inventory_.snapshot(), *followers_.reaches(),
                              self_.name, clock_.now()});
    }

  private:
    static void log_quarantine(std::string const& host, std::string const& reason) {
        log(Severity::error, "a host is quarantined: nothing new is attached there",
            {{"host", host},
             {"reason", reason},
             {"remedy", fmt::format("check the host; then: vfctl host confirm {}", host)}});
    }

    void ask_host(HostRecord const& host, http::Request const& request, Keeper::Answered answered) {
        auto const target = target_of(host);
        if (target)
            pool_.send(*target, request, keeper_patience, std::move(answered));
        else
            answered(fail(target.error()));
    }

    // --- events ---
    static void put_hosts(FleetEvents& events, Table<HostRecord> const& before,
                          Table<HostRecord> const& now) {
        for (auto const& [name, stored] : *before)
            if (!find_record(now, name)) events.remove_host(stored.record.number);
        for (auto const& [name, stored] : *now) events.put_host(entry_of(name, stored.record));
    }
    // One that can't be read is left out, and its readers list again.
    void pass_on(std::uint32_t host, http::SentEvent const& event) const {
        auto const number = parse_digits(event.id, {.max = UINT64_MAX});
        auto read =
            event.name.empty() ? read_host_event(event.data) : Result<HostEvent>(fail(Error{}));
        if (!read && !number) return;
        streams_.change([host, number, read = std::move(read)](FleetEvents& events) {
            if (read)
                events.append(host, *read);
            else
                events.begin(host, *number);
        });
    }

    // Any replica does; if it fails, the next turn finds the same.
    void drop_expired() const {
        auto const now = clock_.now();
        if (!drop_expired_tokens(*registry_.state(), now)) return;
        static_cast<void>(
            writer_
                .write(
                    [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
                        return drop_expired_tokens(state, now);
                    },
                    clock_.steady_now() + etcd_patience)
                .has_value());
    }

    // The first replica writes down which fleet it is. One of another fleet, or of a version that
    // does not know the format, takes part in nothing.
    [[nodiscard]] Deadline found() {
        auto const again = clock_.steady_now() + founding_again;
        auto const state = registry_.state();
        if (state->stale_since) return again;
        if (takes_part_) {
            drop_expired();
            return again;
        }
        auto const act = new_act();
        auto const done = writer_.write(
            [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                VFMGR_CHECK(check_fleet(now, self_.fleet, self_.ca));
                if (now.fleet) return std::nullopt;
                return begin_fleet({self_.fleet, self_.ca, clock_.now(), {}}, act);
            },
            again + etcd_patience);
        if (!done) {
            log(Severity::error, "this replica takes part in nothing",
                {{"detail", done.error().detail}, {"remedy", done.error().remedy}});
            return again;
        }
        takes_part_ = true;
        keeper_.start();
        presence_.start();
        election_.start();
        return again;
    }

    Self const self_;
    std::vector<std::string> const certificate_files_;
    Front const front_;
    Clock& clock_;
    Stop stop_;
    std::unique_ptr<Etcd> etcd_;
    http::ClientPool pool_;
    Inventory inventory_;
    FleetEventStreams streams_;
    Table<HostRecord> known_hosts_ = std::make_shared<Records<HostRecord> const>();
    Registry registry_;
    Writer writer_;
    Keeper keeper_;
    Contacts contacts_;
    Followers followers_;
    Presence presence_;
    Election election_;
    Scheduler scheduler_;
    Parts const parts_;
    bool takes_part_ = false;  // of the thread below
    std::unique_ptr<OwnThread> founding_;
};

}  // namespace

Result<FleetSeams> begin(Config const& config, Front const& front, MakeEtcd const& make_etcd,
                         Clock& clock) {
    VFMGR_TRY(auto self, self_of(config, clock.now()));
    VFMGR_TRY(auto etcd, make_etcd(config.etcd));
    auto const fleet =
        std::make_shared<Fleet>(std::move(self), config, std::move(etcd), front, clock);
    fleet->start();
    Access const nobody{std::make_shared<std::map<std::string, Token> const>(),
                        std::make_shared<Tenants const>()};
    FleetTrust const replicas{fleet->self().fleet, fleet->self().ca_sha256};
    return FleetSeams{.access = [nobody] { return nobody; },
                      .not_ready = [fleet] { return fleet->not_ready(); },
                      .metrics = [fleet] { return fleet->metrics(); },
                      .save_token_uses = [](std::map<std::string, TokenUse> const&) {},
                      .routes = fleet->routes(),
                      .replicas = replicas};
}

}  // namespace vfmgr::fleet
