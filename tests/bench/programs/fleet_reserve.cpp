// SPDX-License-Identifier: Apache-2.0
// fleet_reserve SETTINGS: reservations of a fleet, and what they are made of. SETTINGS is a JSON
// file; each line of standard input is "fleet", "etcd" or "hosts" and a number of reservations, and
// gets the seconds that they took, at the same concurrency. What was made is then undone, untimed.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/http/client_pool.hpp"
#include "api/types/json.hpp"
#include "service/fleet/etcd/grpc_etcd.hpp"

namespace vfmgr::fleet {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{60};

[[noreturn]] void give_up(std::string const& why) {
    std::cerr << why << "\n";
    std::_Exit(1);
}

// Calls `one` with each number below `count`, from so many threads. Returns the seconds.
double all_of(std::size_t count, std::size_t threads, std::function<void(std::size_t)> const& one) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> workers;
    auto const began = Clock::now();
    for (std::size_t i = 0; i < threads; ++i)
        workers.emplace_back([&] {
            for (auto at = next++; at < count; at = next++) one(at);
        });
    for (auto& worker : workers) worker.join();
    return std::chrono::duration<double>(Clock::now() - began).count();
}

void require(Result<http::Response> const& answer, int status) {
    if (!answer) give_up(answer.error().detail);
    if (answer->status != status) give_up(fmt::format("{}: {}", answer->status, answer->body));
}

class Bench {
  public:
    explicit Bench(nlohmann::json const& settings)
        : threads_(settings.at("concurrency")),
          pool_({.certificate_file = settings.at("certificate"), .key_file = settings.at("key")}) {
        for (auto const& path : settings.at("sockets")) replicas_.push_back({path});
        for (auto const& host : settings.at("hosts")) {
            http::TlsTarget target;
            target.host = host.at("address");
            target.port = host.at("port");
            target.public_key = host.at("public_key");
            hosts_.push_back(std::move(target));
        }
        auto made = grpc_etcd({.endpoints = settings.at("endpoints"),
                               .prefix = "/bench/",
                               .ca_file = settings.at("ca"),
                               .certificate_file = settings.at("certificate"),
                               .key_file = settings.at("key")});
        if (!made) give_up(made.error().detail);
        etcd_ = std::move(*made);
    }

    double measure(std::string const& what, std::size_t count) {
        ++round_;
        if (what == "etcd") return etcd(count);
        if (what == "hosts") return at_hosts(count);
        return at_fleet(count);
    }

  private:
    [[nodiscard]] std::string name(std::size_t at) const {
        return fmt::format("b-{}-{}", round_, at);
    }
    [[nodiscard]] std::string path(std::size_t at) const { return "/v1/reservations/" + name(at); }

    // A key of its own each, as large as a reservation's.
    double etcd(std::size_t count) {
        std::string const value(600, 'v');
        auto const taken = all_of(count, threads_, [&](std::size_t at) {
            auto const key = "reservations/" + name(at);
            auto const done =
                etcd_->commit({{absent(key)}, {Put{key, value}}}, Clock::now() + patience);
            if (!done || !done->succeeded) give_up("etcd did not commit");
        });
        auto const erased =
            etcd_->commit({{}, {Erase{"reservations/", Match::prefix}}}, Clock::now() + patience);
        if (!erased) give_up(erased.error().detail);
        return taken;
    }
    double at_hosts(std::size_t count) {
        nlohmann::json const body{{"network", "train"}, {"count", 1}};
        auto const send = [&](std::size_t at, http::Request const& request, int status) {
            require(pool_.send(hosts_[at % hosts_.size()], request, patience), status);
        };
        auto const taken = all_of(count, threads_, [&](std::size_t at) {
            send(at, http::make_request("PUT", path(at), body), 200);
        });
        all_of(count, threads_,
               [&](std::size_t at) { send(at, http::make_request("DELETE", path(at)), 204); });
        return taken;
    }
    double at_fleet(std::size_t count) {
        nlohmann::json const body{{"network", "train"}, {"count", 1}};
        auto const send = [&](std::size_t at, http::Request const& request, int status) {
            http::Client const client(replicas_[at % replicas_.size()]);
            require(client.send(request, patience), status);
        };
        auto const taken = all_of(count, threads_, [&](std::size_t at) {
            send(at, http::make_request("PUT", path(at), body), 201);
        });
        all_of(count, threads_,
               [&](std::size_t at) { send(at, http::make_request("DELETE", path(at)), 204); });
        return taken;
    }

    std::size_t threads_;
    http::ClientPool pool_;
    std::vector<http::UnixTarget> replicas_;
    std::vector<http::TlsTarget> hosts_;
    std::unique_ptr<Etcd> etcd_;
    std::size_t round_ = 0;
};

}  // namespace
}  // namespace vfmgr::fleet

int main(int, char** words) {
    std::ifstream file(words[1]);
    vfmgr::fleet::Bench bench(nlohmann::json::parse(file));
    std::string what;
    for (std::size_t count = 0; std::cin >> what >> count;)
        std::cout << bench.measure(what, count) << std::endl;
    return 0;
}
