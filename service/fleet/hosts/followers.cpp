// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/hosts/followers.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <thread>
#include <variant>

#include "service/fleet/hosts/following.hpp"
#include "service/fleet/hosts/host_calls.hpp"
#include "service/log.hpp"

namespace vfmgr::fleet {
namespace {

// Servers send a comment every 15 seconds.
constexpr std::chrono::seconds silence_max{45};
constexpr std::chrono::milliseconds get_timeout{20'000};
// How long what has come may wait for more before it is published: a copy of all hosts' pointers
// for each event would cost a core.
constexpr std::chrono::milliseconds publish_after{20};

struct Begun {};
struct Came {
    std::string part;
};
struct Ended {
    Error why;
};
struct Answered {
    std::uint64_t number = 0;
    Result<http::Response> answer;
};
// Of a host, and of that connection to it: `life` tells a late message of the one before.
struct HostMessage {
    std::string host;
    std::uint64_t life = 0;
    std::variant<Begun, Came, Ended, Answered> what;
};
struct Hosts {
    Table<HostRecord> hosts;
    Table<MarkRecord> marks;
};
using Message = std::variant<HostMessage, Hosts>;

Error why_ended(Result<http::Response> const& answer) {
    if (!answer) return answer.error();
    auto const refused = http::success_of(*answer);
    if (!refused) return refused.error();
    return {Problem::unavailable, "it has ended its stream of events", {}};
}

}  // namespace

struct Followers::Impl {
    struct Host {
        HostRecord record;
        http::TlsTarget target;
        std::unique_ptr<Following> following;
        http::Followed stream;
        std::uint64_t life = 0;
        Deadline due{};
        Reach reach;
        bool troubled = false;
    };

    FollowersSeams seams;
    std::map<std::string, Host, std::less<>> hosts;
    std::uint64_t lives = 0;
    bool unpublished = false;
    Deadline publish_at{};

    mutable std::mutex mutex;  // guards the members below
    std::condition_variable news;
    std::deque<Message> messages;
    bool stopping = false;
    std::shared_ptr<Reaches const> reaches = std::make_shared<Reaches>();
    std::thread thread;

    explicit Impl(FollowersSeams with) : seams(std::move(with)) {}

    void post(Message message) {
        {
            std::lock_guard const lock(mutex);
            if (stopping) return;
            messages.push_back(std::move(message));
        }
        news.notify_one();
    }

    void run() {
        for (;;) {
            std::deque<Message> batch;
            {
                std::unique_lock lock(mutex);
                news.wait_until(lock, next_due(), [this] { return stopping || !messages.empty(); });
                if (stopping) return;
                batch.swap(messages);
            }
            for (auto& message : batch) std::visit([this](auto& one) { take(one); }, message);
            for (auto& [name, host] : hosts) turn(host);
            if (unpublished && seams.clock.steady_now() >= publish_at) publish();
        }
    }

    [[nodiscard]] Deadline next_due() const {
        // A condition variable can't wait for Deadline::max().
        auto due = seams.clock.steady_now() + std::chrono::minutes(1);
        if (unpublished) due = std::min(due, publish_at);
        for (auto const& [name, host] : hosts) due = std::min(due, host.due);
        return due;
    }

    void turn(Host& host) {
        auto const now = seams.clock.steady_now();
        if (now >= host.due) host.due = host.following->turn(now, seams.clock.now());
    }

    // --- hosts that come and go ---

    void take(Hosts const& now) {
        auto const& table = now.hosts;
        for (auto it = hosts.begin(); it != hosts.end();) {
            bool const stays = find_record(table, it->first) != nullptr;
            if (!stays) {
                seams.inventory.remove_host(it->first);
                changed();
            }
            it = stays ? std::next(it) : hosts.erase(it);
        }
        for (auto const& [name, stored] : *table) {
            auto const* const mark = find_record(now.marks, name);
            put_host(name, stored.record,
                     mark ? KnownEvent{mark->record.event, mark->record.event_is} : KnownEvent{});
        }
    }

    void put_host(std::string const& name, HostRecord const& record, KnownEvent const& known) {
        auto& host = hosts[name];
        bool const moved = host.record.url != record.url ||
                           host.record.public_key != record.public_key || !host.following;
        if (host.following && host.record == record) return;
        host.record = record;
        seams.inventory.put_host(entry_of(name, record), seams.clock.now());
        changed();
        if (!moved) return;
        auto target = target_of(record);
        host.target = target ? std::move(*target) : http::TlsTarget{};
        host.stream = {};
        host.following = std::make_unique<Following>(calls_of(name), DocumentLimits{}, known);
        host.due = seams.clock.steady_now();
    }

    FollowingCalls calls_of(std::string const& name) {
        return {.open = [this, name](std::optional<std::uint64_t> after) { open(name, after); },
                .close = [this, name] { hosts.at(name).stream = {}; },
                .get =
                    [this, name](std::uint64_t number, http::Request const& request) {
                        auto const& host = hosts.at(name);
                        seams.pool.send(
                            host.target, request, get_timeout,
                            [this, name, life = host.life, number](Result<http::Response> answer) {
                                post(HostMessage{name, life, Answered{number, std::move(answer)}});
                            });
                    },
                .event =
                    [this, name](http::SentEvent const& event) {
                        seams.event(hosts.at(name).record.number, event);
                    },
                .contact =
                    [this, name](Contact const& contact) {
                        auto& host = hosts.at(name);
                        host.reach.contact = contact;
                        seams.contact(name, contact, host.following->last_event());
                    },
                .other_history =
                    [this, name](std::uint64_t number) {
                        seams.contradicts(
                            name,
                            fmt::format("its event {} is not the one that it sent before: its "
                                        "store was replaced by an older one",
                                        number));
                    }};
    }

    void open(std::string const& name, std::optional<std::uint64_t> after) {
        auto& host = hosts.at(name);
        auto request = http::make_request("GET", "/v1/events");
        if (after) request.query["after"] = std::to_string(*after);
        host.stream = {};
        host.life = ++lives;
        auto const of_this = [this, name, life = host.life](auto what) {
            post(HostMessage{name, life, std::move(what)});
        };
        host.stream = seams.pool.follow(
            host.target, request, silence_max,
            {.take = [of_this](std::string_view part) { of_this(Came{std::string(part)}); },
             .ended =
                 [of_this](Result<http::Response> answer) { of_this(Ended{why_ended(answer)}); },
             .begun = [of_this](http::Response) { of_this(Begun{}); }});
    }

    // --- what hosts send ---

    void take(HostMessage& message) {
        auto const found = hosts.find(message.host);
        if (found == hosts.end() || found->second.life != message.life) return;
        auto& host = found->second;
        auto const now = seams.clock.steady_now();
        auto const at = seams.clock.now();
        auto& following = *host.following;
        if (std::holds_alternative<Begun>(message.what))
            following.begun(at);
        else if (auto const* const came = std::get_if<Came>(&message.what))
            following.came(came->part, now, at);
        else if (auto const* const ended = std::get_if<Ended>(&message.what))
            following.ended(ended->why, now, at);
        else if (auto const* const answered = std::get_if<Answered>(&message.what))
            following.answered(answered->number, answered->answer, now, at);
        report_trouble(message.host, host);
        host.due = following.turn(now, at);
        seams.inventory.put_documents(message.host, following.documents());
        seams.inventory.put_stale(message.host, following.stale());
        changed();
    }

    // Once, until it is over.
    static void report_trouble(std::string const& name, Host& host) {
        auto const& trouble = host.following->trouble();
        bool const is_new = !trouble.empty() && !host.troubled;
        host.troubled = !trouble.empty();
        if (is_new)
            log(Severity::warning, "a host's answers can't be used",
                {{"host", name}, {"detail", trouble}});
    }

    void changed() {
        if (unpublished) return;
        unpublished = true;
        publish_at = seams.clock.steady_now() + publish_after;
    }

    void publish() {
        unpublished = false;
        seams.inventory.publish();
        auto next = std::make_shared<Reaches>();
        for (auto& [name, host] : hosts) {
            host.reach.unreachable_since = host.following->unreachable_since();
            host.reach.unreachable_why = host.following->unreachable_why();
            host.reach.version = host.following->version();
            host.reach.last_event = host.following->last_event();
            next->emplace(name, host.reach);
        }
        {
            std::lock_guard const lock(mutex);
            reaches = std::move(next);
        }
        if (seams.published) seams.published();
    }
};

HostEntry entry_of(std::string const& name, HostRecord const& record) {
    return {name, record.number, record.rack.value_or(""), record.labels};
}

Followers::Followers(FollowersSeams seams) : impl_(std::make_unique<Impl>(std::move(seams))) {}

Followers::~Followers() {
    stop();
}

void Followers::start() {
    impl_->thread = std::thread([this] { impl_->run(); });
}

void Followers::stop() {
    if (!impl_->thread.joinable()) return;
    {
        std::lock_guard const lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->news.notify_one();
    impl_->thread.join();
    impl_->hosts.clear();  // ends the streams: none of their callbacks runs after that
}

void Followers::follow(Table<HostRecord> hosts, Table<MarkRecord> marks) {
    impl_->post(Hosts{std::move(hosts), std::move(marks)});
}

std::shared_ptr<Reaches const> Followers::reaches() const {
    std::lock_guard const lock(impl_->mutex);
    return impl_->reaches;
}

}  // namespace vfmgr::fleet
