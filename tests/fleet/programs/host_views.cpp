// SPDX-License-Identifier: Apache-2.0
// Many hosts of a fleet in one process, each at an address of its own over TLS, as cheaply as their
// answers allow (simulated_host.hpp). For benches and tests of a large fleet:
//
//   host_views --views FOLDER --keys FOLDER --commits FILE --first 1 --hosts 250 [--port 8470]
//              [--ca FILE] [--fleet ID]
//
// Host n is at 127.1.(n / 250).(n % 250 + 1), with a key of its own, which is made if the folder
// has none. What hosts commit is appended to one file and synced. With --ca, hosts answer only
// clients of that CA; with --fleet, each says that it is in that fleet, as "hn". Prints "ready"
// when all serve. Each line on standard input is a JSON object, and is answered by a line of
// counts: {"events_per_second": 50} has so many events happen from then on, to one host after the
// other; {} changes nothing. Ends with its standard input.
#include <fmt/format.h>
#include <sys/resource.h>

#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <list>
#include <thread>

#include "api/types/json.hpp"
#include "tests/fleet/programs/simulated_host.hpp"

namespace vfmgr::simulation {
namespace {

std::string address_of(std::uint32_t number) {
    return fmt::format("127.1.{}.{}", number / 250, number % 250 + 1);
}

// Lets events happen at a pace, on a thread of its own.
class Pace {
  public:
    explicit Pace(std::function<void()> happen)
        : happen_(std::move(happen)), thread_([this] { work(); }) {}
    ~Pace() {
        set(-1);
        thread_.join();
    }
    Pace(Pace const&) = delete;
    Pace& operator=(Pace const&) = delete;
    // Negative: ends.
    void set(double per_second) {
        std::lock_guard const lock(mutex_);
        per_second_ = per_second;
        changed_.notify_one();
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        auto due = std::chrono::steady_clock::now();
        while (per_second_ >= 0) {
            if (per_second_ == 0) {
                changed_.wait(lock, [this] { return per_second_ != 0; });
                due = std::chrono::steady_clock::now();
                continue;
            }
            auto const each = std::chrono::duration<double>(1 / per_second_);
            due += std::chrono::duration_cast<std::chrono::steady_clock::duration>(each);
            auto const set = per_second_;
            if (changed_.wait_until(lock, due, [&] { return per_second_ != set; })) continue;
            happen_();
        }
    }

    std::function<void()> happen_;
    std::mutex mutex_;
    std::condition_variable changed_;
    double per_second_ = 0;
    std::thread thread_;
};

struct Simulation {
    Views views;
    Commits commits;
    Counts counts;                   // the io thread's, as the next
    std::list<SimulatedHost> hosts;  // outlive the server, which calls them
    std::list<SimulatedHost>::iterator next{};
    http::Server server{limits(), [](std::string const& what) { std::cerr << what << "\n"; }};

    static http::Limits limits() {
        http::Limits limits;
        limits.connections_max = 1024;
        limits.connections_per_peer_max = 1024;
        limits.strangers_per_peer_max = 1024;
        return limits;
    }
};

Result<void> start(Simulation& simulation, std::map<std::string, std::string>& named) {
    auto const port = static_cast<std::uint16_t>(std::stoi(named["--port"]));
    VFMGR_TRY(simulation.views, read_views(named["--views"]));
    auto const first = static_cast<std::uint32_t>(std::stoul(named["--first"]));
    auto const count = static_cast<std::uint32_t>(std::stoul(named["--hosts"]));
    VFMGR_CHECK(simulation.commits.open(named["--commits"]));
    for (auto number = first; number < first + count; ++number) {
        auto const stem = fmt::format("{}/h{}", named["--keys"], number);
        auto const address = address_of(number);
        if (!std::filesystem::exists(stem + ".crt"))
            VFMGR_CHECK(http::make_self_signed(stem + ".crt", stem + ".key",
                                               {fmt::format("h{}", number), address}));
        auto& host = simulation.hosts.emplace_back(number, simulation.views, simulation.commits,
                                                   simulation.counts, !named["--ca"].empty(),
                                                   named["--fleet"]);
        VFMGR_CHECK(simulation.server.listen(
            http::TlsListen{address, port, stem + ".crt", stem + ".key", named["--ca"]},
            [&host](http::Request request, http::Respond respond) {
                host.answer(std::move(request), std::move(respond));
            }));
    }
    simulation.next = simulation.hosts.begin();
    simulation.server.start();
    return {};
}

std::string counts_of(Simulation const& simulation) {
    auto const& [requests, unchanged, events, streams] = simulation.counts;
    return to_json_text({{"hosts", simulation.hosts.size()},
                         {"requests", requests},
                         {"unchanged", unchanged},
                         {"events", events},
                         {"streams", streams},
                         {"commits", simulation.commits.lines()},
                         {"syncs", simulation.commits.syncs()}});
}

void serve_commands(Simulation& simulation) {
    auto const io_post = simulation.server.io_post();
    Pace pace([&] {
        io_post([&simulation] {
            simulation.next->drift();
            if (++simulation.next == simulation.hosts.end())
                simulation.next = simulation.hosts.begin();
        });
    });
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        auto const command = parse_json(line);
        if (command && command->contains("events_per_second"))
            pace.set(command->at("events_per_second").get<double>());
        io_post([&] { std::cout << counts_of(simulation) << std::endl; });
    }
}

int run(std::vector<std::string> const& words) {
    std::map<std::string, std::string> named{{"--first", "1"}, {"--port", "8470"}};
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) named[words[i]] = words[i + 1];
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    Simulation simulation;
    if (auto const started = start(simulation, named); !started) {
        std::cerr << "host_views: " << detail_with_causes(started.error()) << "\n";
        return 1;
    }
    serve_commands(simulation);
    simulation.server.stop();
    return 0;
}

}  // namespace
}  // namespace vfmgr::simulation

int main(int argc, char** argv) {
    return vfmgr::simulation::run({argv + 1, argv + argc});
}
