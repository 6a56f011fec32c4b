// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/lists.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;
using nlohmann::json;
using Query = std::map<std::string, std::string>;

http::Request request(std::string const& path, Query query = {}) {
    http::Request one;
    one.method = "GET";
    one.path = path;
    one.query = std::move(query);
    return one;
}

Result<json> answer(InventoryView const& view, FleetList list, Query query = {},
                    Tenant const* viewer = nullptr) {
    auto const response = list_page(view, list, request("/v1/list", std::move(query)), viewer);
    if (!response) return tl::unexpected(response.error());
    return json::parse(response->body);
}

// "h1/0" for a VF, "h1/name" for others.
std::vector<std::string> names(json const& page) {
    std::vector<std::string> all;
    for (auto const& item : page.at("items")) {
        std::string name;
        for (char const* const key : {"index", "id", "uuid", "name", "run"})
            if (name.empty() && item.contains(key))
                name = item[key].is_string() ? item[key].get<std::string>() : item[key].dump();
        all.push_back(item.at("host").get<std::string>() + "/" + name);
    }
    return all;
}

std::vector<std::string> listed(InventoryView const& view, FleetList list, Query query = {},
                                Tenant const* viewer = nullptr) {
    auto const page = answer(view, list, std::move(query), viewer);
    return page ? names(*page) : std::vector<std::string>{page.error().detail};
}

using Names = std::vector<std::string>;

struct ListsTest : testing::Test {
    Inventory inventory;

    ListsTest() {
        HostDocuments documents;
        put_list(documents, Collection::pfs,
                 {pf_text(1, {vf_text(1, 0), vf_text(1, 1, "attached", "aa000001", "db1"),
                              vf_text(1, 2, "quarantined")}),
                  pf_text(2, {vf_text(2, 0)})},
                 {}, at(1));
        put_list(documents, Collection::vms, {vm_text("db1"), vm_text("off", "shut_off")}, {},
                 at(1));
        put_list(documents, Collection::attachments,
                 {attachment_text("aa000001", 1, 1, "db1", "blue", "pass"),
                  attachment_text("aa000002", 1, 9, "db2", "red")},
                 {}, at(1));
        for (auto const list : {Collection::networks, Collection::pools, Collection::reservations})
            put_list(documents, list, {}, {}, at(1));
        inventory.put_host(host("h2", 2, "r2", {{"row", "3"}}), at(1));
        inventory.put_host(host("h10", 10, "r1"), at(1));
        inventory.put_documents("h2", documents);
        inventory.put_documents("h10", documents);
        inventory.publish();
    }
    [[nodiscard]] InventoryView const& view() const { return *(held = inventory.snapshot()); }
    mutable std::shared_ptr<InventoryView const> held;
};

TEST_F(ListsTest, AreInTheOrderOfHostsAndThenOfTheHost) {
    EXPECT_EQ(listed(view(), FleetList::vfs),
              (Names{"h10/0", "h10/1", "h10/2", "h10/0", "h2/0", "h2/1", "h2/2", "h2/0"}));
    EXPECT_EQ(listed(view(), FleetList::vms),
              (Names{"h10/uuid-db1", "h10/uuid-off", "h2/uuid-db1", "h2/uuid-off"}));
}

TEST_F(ListsTest, AnItemIsTheHostsTextAfterItsName) {
    auto const page = list_page(view(), FleetList::vfs, request("/v1/vfs", {{"limit", "1"}}), {});
    ASSERT_TRUE(page);
    EXPECT_TRUE(page->body.starts_with(R"({"items":[{"host":"h10",)" + vf_text(1, 0).substr(1) +
                                       R"(],"next":"a)"));
    EXPECT_TRUE(page->body.ends_with(R"(","stale":[]})"));
    auto const pfs = list_page(view(), FleetList::pfs, request("/v1/pfs", {{"host", "h2"}}), {});
    EXPECT_NE(pfs->body.find(R"("vfs":[)" + vf_text(2, 0) + "]"), std::string::npos);
}

TEST_F(ListsTest, Filters) {
    auto const vfs = [&](Query query) { return listed(view(), FleetList::vfs, std::move(query)); };
    EXPECT_EQ(vfs({{"host", "h2"}, {"pf", "0000:02:00.0"}}), Names{"h2/0"});
    EXPECT_EQ(vfs({{"rack", "r1"}, {"state", "quarantined"}}), Names{"h10/2"});
    EXPECT_EQ(vfs({{"label", "row=3"}, {"vm", "db1"}}), Names{"h2/1"});
    EXPECT_EQ(vfs({{"label", "row=4"}}), Names{});
    EXPECT_EQ(vfs({{"host", "h2"}, {"vm", "uuid-db1"}}), Names{"h2/1"});
    EXPECT_EQ(vfs({{"network", "blue"}}), (Names{"h10/1", "h2/1"}));
    EXPECT_EQ(vfs({{"network", "red"}}), Names{}) << "that VF is not there";
    EXPECT_EQ(vfs({{"attachment", "aa000001"}, {"state", "free"}}), Names{});
    auto const attachments = [&](Query query) {
        query["host"] = "h2";
        return listed(view(), FleetList::attachments, std::move(query));
    };
    EXPECT_EQ(attachments({}), (Names{"h2/aa000001", "h2/aa000002"}));
    EXPECT_EQ(attachments({{"vm", "db2"}}), Names{"h2/aa000002"});
    EXPECT_EQ(attachments({{"state", "detaching"}}), Names{});
    EXPECT_EQ(attachments({{"pool", "rails"}, {"network", "red"}}), Names{"h2/aa000002"});
    EXPECT_EQ(listed(view(), FleetList::vms, {{"state", "shut_off"}, {"host", "h2"}}),
              Names{"h2/uuid-off"});
    EXPECT_EQ(listed(view(), FleetList::verifications, {{"verdict", "pass"}}),
              (Names{"h10/r-aa000001", "h2/r-aa000001"}));
    EXPECT_EQ(listed(view(), FleetList::verifications, {{"verdict", "fail"}}), Names{});
}

TEST_F(ListsTest, RefuseWhatTheyDoNotUnderstand) {
    auto const refused = [&](FleetList list, Query query) {
        auto const page = answer(view(), list, std::move(query));
        return page ? std::string("taken") : page.error().detail;
    };
    EXPECT_EQ(refused(FleetList::vfs, {{"state", "running"}}), "state has no value 'running'");
    EXPECT_EQ(refused(FleetList::vms, {{"state", "running"}}), "taken");
    EXPECT_EQ(refused(FleetList::vfs, {{"label", "row"}}), "label is 'row'");
    EXPECT_EQ(refused(FleetList::vfs, {{"host", ""}}), "host has no value");
    EXPECT_EQ(refused(FleetList::vfs, {{"limit", "0"}}), "limit is '0'");
    EXPECT_EQ(refused(FleetList::vfs, {{"limit", "501"}}), "limit is '501'");
    EXPECT_NE(refused(FleetList::vfs, {{"pf", "x"}}), "taken");
    EXPECT_NE(refused(FleetList::vfs, {{"cursor", "x"}}), "taken");
    auto const next = answer(view(), FleetList::vms, {{"limit", "1"}})->at("next");
    EXPECT_NE(refused(FleetList::vfs, {{"cursor", next}, {"limit", "1"}}), "taken")
        << "a cursor of VMs, on a list with the same path: its key is none of a VF";
}

TEST_F(ListsTest, SayWhichHostsMayBeOld) {
    inventory.put_stale("h2", Stale{at(60), StaleWhy::unreachable});
    inventory.put_host(host("h3", 3), at(70));
    auto documents = inventory.find("h10")->documents;
    put_item(documents, Collection::vms, "x", "{}", {}, at(80));
    inventory.put_documents("h10", documents);
    inventory.publish();
    auto const stale = [&](FleetList list, Query query = {}) {
        return answer(view(), list, std::move(query))->at("stale").dump();
    };
    auto const h2 = R"({"detail":null,"host":"h2","since":")" + to_rfc3339(at(60)) +
                    R"(","why":"unreachable"})";
    auto const h3 =
        R"({"detail":null,"host":"h3","since":")" + to_rfc3339(at(70)) + R"(","why":"not_read"})";
    EXPECT_EQ(stale(FleetList::vfs), "[" + h2 + "," + h3 + "]");
    EXPECT_EQ(stale(FleetList::vfs, {{"host", "h10"}}), "[]");
    EXPECT_EQ(stale(FleetList::vms, {{"host", "h10"}}),
              R"([{"detail":"vms: 'uuid' is missing","host":"h10","since":")" + to_rfc3339(at(80)) +
                  R"(","why":"incomplete"}])");
    EXPECT_EQ(listed(view(), FleetList::vms, {{"host", "h2"}}).size(), 2U) << "its last part";
}

TEST_F(ListsTest, TheListOfOldHostsIsBounded) {
    for (std::uint32_t number = 100; number < 300; ++number)
        inventory.put_host(host("new" + std::to_string(number), number), at(1));
    inventory.publish();
    auto const page = answer(view(), FleetList::vfs);
    EXPECT_EQ(page->at("stale").size(), 100U);
    EXPECT_EQ(page->at("stale_more"), 100);
}

TEST_F(ListsTest, ATenantGetsItsOwn) {
    HostDocuments documents;
    auto const put = [&](Collection of, std::string const& name) {
        put_item(documents, of, "x", example(name), {}, at(1));
    };
    put(Collection::pfs, "pf");
    put(Collection::vms, "vm_info");
    put(Collection::attachments, "attachment");
    put(Collection::networks, "network");
    put(Collection::pools, "pool");
    put(Collection::reservations, "reservation");
    inventory.put_documents("h10", documents);
    inventory.publish();
    Tenant tenant{"blue", {"6f5b2f1e-6c0e-4f2a-9a55-0c3f0f0f7c11"}, {"lab"}, {}, {}, {}};
    EXPECT_EQ(listed(view(), FleetList::vfs, {}, &tenant), Names{"h10/2"});
    EXPECT_EQ(listed(view(), FleetList::vfs, {{"vm", "db1"}}, &tenant), Names{});
    EXPECT_EQ(listed(view(), FleetList::attachments, {}, &tenant), Names{"h10/3f9c2b1d"});
    EXPECT_EQ(listed(view(), FleetList::verifications, {}, &tenant).size(), 1U);
    EXPECT_EQ(listed(view(), FleetList::pfs, {}, &tenant), Names{});
    EXPECT_EQ(listed(view(), FleetList::pools, {}, &tenant), Names{});
    EXPECT_EQ(listed(view(), FleetList::reservations, {}, &tenant), Names{});
    auto const networks = answer(view(), FleetList::networks, {}, &tenant);
    EXPECT_EQ(networks->at("items").at(0).at("pfs"), json::array()) << "no address of the host";
    EXPECT_EQ(listed(view(), FleetList::networks, {{"pf", "0000:01:00.0"}}, &tenant), Names{});
    EXPECT_EQ(answer(view(), FleetList::vms, {}, &tenant)->at("items").size(), 1U);
    tenant.pools = {"train-rails"};
    auto const pools = answer(view(), FleetList::pools, {}, &tenant);
    EXPECT_EQ(pools->at("items").at(0).at("select").value("pfs", json::array()), json::array());
    inventory.put_stale("h2", Stale{at(60), StaleWhy::unreachable});
    inventory.put_stale("h10", Stale{at(60), StaleWhy::unreachable});
    inventory.publish();
    auto const stale = answer(view(), FleetList::vfs, {}, &tenant)->at("stale");
    ASSERT_EQ(stale.size(), 1U);
    EXPECT_EQ(stale[0].at("host"), "h10") << "it has nothing on h2";
}

TEST_F(ListsTest, WhatThisVersionCantShowATenantIsSaid) {
    HostDocuments documents;
    put_list(documents, Collection::vms,
             {R"({"uuid":"u1","name":"a","state":"dreaming","secret":1})"}, {}, at(1));
    inventory.put_documents("h10", documents);
    inventory.publish();
    Tenant const tenant{"blue", {"u1"}, {}, {}, {}, {}};
    auto const page = answer(view(), FleetList::vms, {}, &tenant);
    EXPECT_EQ(page->at("items"), json::array());
    EXPECT_EQ(page->at("stale").at(0).at("why"), "incomplete");
    EXPECT_EQ(answer(view(), FleetList::vms, {{"host", "h10"}})->at("items").size(), 1U);
}

// Pages cut at any place have what one walk has; hosts and VMs that come or go between two pages
// neither repeat nor hide others.
RC_GTEST_PROP(Lists, PagesMissNothing, ()) {
    Inventory inventory;
    std::set<std::string> always;
    std::map<std::string, std::set<std::string>> vms;
    auto const put = [&](std::string const& name) {
        std::vector<std::string> items;
        for (auto const& vm : vms[name]) items.push_back(vm_text(vm));
        HostDocuments documents;
        put_list(documents, Collection::vms, items, {}, at(1));
        inventory.put_host(host(name, 1), at(1));
        inventory.put_documents(name, documents);
        inventory.publish();
    };
    auto const any_host = [] { return "h" + std::to_string(*rc::gen::inRange(0, 12)); };
    auto const count = *rc::gen::inRange(0, 40);
    for (int i = 0; i < count; ++i) {
        auto const name = any_host();
        auto const vm = "keep" + std::to_string(i);
        vms[name].insert(vm);
        always.insert(name + "/uuid-" + vm);
        put(name);
    }
    std::vector<std::string> got;
    Query query{{"limit", std::to_string(*rc::gen::inRange(1, 7))}};
    for (bool more = true; more;) {
        auto const page = answer(*inventory.snapshot(), FleetList::vms, query);
        RC_ASSERT(page.has_value());
        for (auto& name : names(*page)) got.push_back(std::move(name));
        more = !page->at("next").is_null();
        if (more) query["cursor"] = page->at("next");
        auto const name = any_host();
        auto const passing = "pass" + std::to_string(*rc::gen::inRange(0, 20));
        if (!vms[name].insert(passing).second) vms[name].erase(passing);
        put(name);
    }
    RC_ASSERT(std::set<std::string>(got.begin(), got.end()).size() == got.size());
    for (auto const& one : always) RC_ASSERT(std::ranges::find(got, one) != got.end());
}

}  // namespace
}  // namespace vfmgr::fleet
