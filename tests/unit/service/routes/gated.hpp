// SPDX-License-Identifier: Apache-2.0
// The daemon's routes behind their gate, on an engine with fakes.
#pragma once

#include <gmock/gmock.h>

#include "service/event_log.hpp"
#include "service/reload.hpp"
#include "service/routes/api.hpp"
#include "service/routes/host_gate.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr::test {

inline constexpr char const* stranger = nullptr;

struct Gated : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{example::igb_host()};
    FakeHypervisor hypervisor{kernel};
    example::Bench bench{kernel, hypervisor, folder.path()};
    std::shared_ptr<AuditTrail> trail = std::make_shared<AuditTrail>(bench.engine.control());
    TokenUses uses;
    Sessions sessions;
    TemporaryFolder web;
    ConsoleQuery console{[folder = ConsoleFolder(web.path())]() mutable { return folder.read(); }};
    FleetAccess fleet{folder.file("fleet-ca.pem")};
    Config config;
    RulesInForce rules{{}};
    http::Handler handler;
    bool serves_tls = true;

    void SetUp() override {
        config.changes = {.burst = 3, .per_second = 0.001};
        for (auto const* role : {"viewer", "operator"}) save_token(role);
        open();
    }
    void open() {
        rules.set(resolve_access(config).rules);
        std::vector<Route> routes;
        for (auto& more :
             {audit_routes(bench.engine), root_routes(), operation_routes(bench.engine),
              document_routes(), pf_routes(bench.engine), attachment_routes(bench.engine),
              network_routes(), pool_routes(), fleet_routes({bench.engine, fleet, serves_tls}),
              session_routes({bench.engine, system_clock(), sessions})})
            routes.insert(routes.end(), more.begin(), more.end());
        for (auto& route : token_routes({bench.engine, system_clock(), uses, nouns_of(routes)}))
            routes.push_back(route);
        for (auto& route : console_routes(console)) routes.push_back(route);
        handler =
            router(bench.engine, std::move(routes),
                   host_gate(rules, bench.engine, trail, uses, sessions, fleet, system_clock()));
    }
    template <class T>
    static T answer_of(Query<T> const& query) {
        std::promise<T> answer;
        query.ask({"test", {}},
                  [&](Result<T> result) { answer.set_value(std::move(result.value())); });
        return answer.get_future().get();
    }
    void save_token(std::string const& role) {
        answer_of(bench.engine.save_token({role, token_sha256("vfm_" + role), role, "", {}, {}}));
    }
    void save_scoped(std::string const& role, std::vector<std::string> scopes) {
        answer_of(bench.engine.save_token(
            {"scoped", token_sha256("vfm_scoped"), role, "", {}, {}, std::move(scopes)}));
    }
    std::map<std::string, std::string> const as_json{{"content-type", "application/json"}};

    http::Response post(char const* who, std::string path, std::string body) {
        return ask(who, "POST", std::move(path), {}, std::move(body), as_json);
    }
    // `who` has the token "vfm_<who>"; a stranger has none.
    http::Response ask(char const* who, char const* method, std::string path,
                       std::map<std::string, std::string> query = {}, std::string body = {},
                       std::map<std::string, std::string> headers = {}) {
        http::Request request;
        request.method = method;
        request.path = std::move(path);
        request.query = std::move(query);
        request.body = std::move(body);
        request.headers = std::move(headers);
        request.headers["x-request-id"] = "the-id";
        if (who) request.headers["authorization"] = std::string("Bearer vfm_") + who;
        request.peer = peer;
        request.presence = presence;
        std::promise<http::Response> answer;
        auto answered = answer.get_future();
        handler(std::move(request),
                [&](http::Response response) { answer.set_value(std::move(response)); });
        auto response = answered.get();
        if (response.text) response.body = *response.text;
        return response;
    }
    std::vector<AuditEntry> audit() {
        trail->finish();
        return answer_of(bench.engine.audit({}, {})).items;
    }
    std::shared_ptr<http::Presence> presence = std::make_shared<http::Presence>();
    http::TcpPeer peer{"192.0.2.9"};
};

}  // namespace vfmgr::test
