// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;
using testing::HasSubstr;

DocumentLimits const limits;

HostDocuments two_pfs() {
    HostDocuments documents;
    put_list(documents, Collection::pfs,
             {pf_text(2, {vf_text(2, 0)}),
              pf_text(1, {vf_text(1, 0), vf_text(1, 10, "attached", "3f9c2b1d", "db1"),
                          vf_text(1, 2, "quarantined")})},
             limits, at(1));
    return documents;
}

std::vector<std::string> keys(Part<VfFacts> const& vfs) {
    std::vector<std::string> all;
    for (auto const& vf : vfs.items) all.push_back(to_string(vf.facts.id));
    return all;
}

TEST(HostDocuments, ReadTheExamplesOfTheApi) {
    HostDocuments documents;
    auto const put = [&](Collection collection, std::string const& name) {
        EXPECT_TRUE(put_item(documents, collection, "none", example(name), limits, at(1))) << name;
    };
    put(Collection::pfs, "pf");
    put(Collection::vfs, "vf");
    put(Collection::vms, "vm_info");
    put(Collection::attachments, "attachment-external");
    put(Collection::attachments, "attachment");
    put(Collection::networks, "network");
    put(Collection::pools, "pool");
    put(Collection::reservations, "reservation");
    put(Collection::identities, "identities");
    auto const& pf = documents.pfs->items.at(0).facts;
    EXPECT_EQ(pf.ifname, "enp1s0");
    EXPECT_EQ(pf.labels.at("rail"), "0");
    EXPECT_EQ(pf.networks, std::vector<std::string>{"lab"});
    EXPECT_EQ(pf.standing, Standing::here);
    EXPECT_EQ(pf.numa_node, std::nullopt);
    EXPECT_EQ(pf.rdma_driver, "rxe");
    EXPECT_EQ(documents.vfs->items.size(), 3U);
    EXPECT_EQ(documents.vfs->items.at(1).facts.vm, "vm1");
    EXPECT_EQ(documents.vfs->items.at(2).facts.state, VfStatus::quarantined);
    EXPECT_EQ(documents.vms->items.at(0).facts.state, VmState::running);
    auto const& attachment = *documents.attachments->find("3f9c2b1d");
    EXPECT_EQ(to_string(attachment.facts.mac.value()), "02:76:66:5a:11:02");
    EXPECT_EQ(attachment.facts.verdict, Verdict::pass);
    EXPECT_TRUE(attachment.text.substr(attachment.facts.run_at).starts_with(R"({"run":"9c1f)"));
    EXPECT_EQ(documents.networks->items.at(0).facts.pfs.size(), 2U);
    EXPECT_EQ(documents.pools->items.at(0).facts.network, "lab");
    EXPECT_EQ(documents.reservations->items.at(0).facts.vfs.size(), 2U);
    EXPECT_THAT(documents.identities->text, HasSubstr("52:54:00:10"));
}

TEST(HostDocuments, AreInTheHostsOrder) {
    auto const documents = two_pfs();
    EXPECT_EQ(documents.pfs->items.at(0).facts.pci, PciAddress::parse("0000:01:00.0").value());
    EXPECT_EQ(keys(*documents.vfs),
              (std::vector<std::string>{"0000:01:00.0/0", "0000:01:00.0/2", "0000:01:00.0/10",
                                        "0000:02:00.0/0"}));
    EXPECT_FALSE(documents.vfs->incomplete);
    EXPECT_EQ(documents.vfs->observed_at, at(1));
    EXPECT_EQ(documents.vms->observed_at, Time{}) << "never read";
}

TEST(HostDocuments, APfHasItsVfsAsTheyAreNow) {
    auto documents = two_pfs();
    auto const& pf = documents.pfs->items.at(0);
    auto const vfs = [&] { return whole_text(documents.pfs->items.at(0), *documents.vfs); };
    EXPECT_EQ(vfs(), pf_text(1, {vf_text(1, 0), vf_text(1, 2, "quarantined"),
                                 vf_text(1, 10, "attached", "3f9c2b1d", "db1")}));
    EXPECT_EQ(pf.text.find("quarantined"), std::string::npos) << "they are kept once";
    EXPECT_TRUE(
        put_item(documents, Collection::vfs, "0000:01:00.0/2", vf_text(1, 2), limits, at(2)));
    EXPECT_THAT(vfs(), HasSubstr(vf_text(1, 2)));
    erase_item(documents, Collection::vfs, "0000:01:00.0/10", at(3));
    EXPECT_EQ(keys(*documents.vfs).size(), 3U);
    EXPECT_TRUE(put_item(documents, Collection::pfs, "0000:01:00.0", pf_text(1, {vf_text(1, 7)}),
                         limits, at(4)));
    EXPECT_EQ(keys(*documents.vfs), (std::vector<std::string>{"0000:01:00.0/7", "0000:02:00.0/0"}));
    erase_item(documents, Collection::pfs, "0000:01:00.0", at(5));
    EXPECT_EQ(documents.pfs->items.size(), 1U);
    EXPECT_EQ(keys(*documents.vfs), std::vector<std::string>{"0000:02:00.0/0"});
}

TEST(HostDocuments, AChangeLeavesCopiesAsTheyAre) {
    auto documents = two_pfs();
    auto const before = documents;
    erase_item(documents, Collection::vfs, "0000:01:00.0/0", at(2));
    EXPECT_EQ(before.vfs->items.size(), 4U);
    EXPECT_EQ(before.attachments, documents.attachments) << "what did not change is shared";
}

TEST(HostDocuments, WhatCantBeReadIsNeverSilentlyGone) {
    auto documents = two_pfs();
    EXPECT_FALSE(put_item(documents, Collection::vfs, "0000:01:00.0/0",
                          R"({"pf":"0000:01:00.0","index":"0","state":"free"})", limits, at(7)));
    EXPECT_EQ(keys(*documents.vfs).size(), 3U) << "nor is it there as it was";
    ASSERT_TRUE(documents.vfs->incomplete);
    EXPECT_EQ(documents.vfs->incomplete->reason, "vfs: 'index' is no number that fits");
    EXPECT_EQ(documents.vfs->incomplete->since, at(7));
    EXPECT_TRUE(
        put_item(documents, Collection::vfs, "0000:01:00.0/0", vf_text(1, 0), limits, at(8)));
    EXPECT_TRUE(documents.vfs->incomplete) << "until the whole list was read";
    put_list(documents, Collection::pfs, {pf_text(1)}, limits, at(9));
    EXPECT_FALSE(documents.vfs->incomplete);
}

TEST(HostDocuments, SayWhyAListIsIncomplete) {
    auto const reason = [](Collection collection, std::vector<std::string> items,
                           DocumentLimits const& within = limits) {
        HostDocuments documents;
        put_list(documents, collection, std::move(items), within, at(1));
        if (documents.pfs->incomplete) return documents.pfs->incomplete->reason;
        if (documents.vfs->incomplete) return documents.vfs->incomplete->reason;
        if (documents.vms->incomplete) return documents.vms->incomplete->reason;
        return std::string("complete");
    };
    using enum Collection;
    EXPECT_EQ(reason(vms, {vm_text("a"), vm_text("b")}), "complete");
    EXPECT_EQ(reason(vms, {vm_text("a", "dreaming")}), "complete") << "a word of a newer host";
    EXPECT_EQ(reason(vms, {"7"}), "vms: '' is no object");
    EXPECT_EQ(reason(vms, {vm_text("a"), vm_text("a")}), "vms: two items have one key");
    EXPECT_EQ(reason(vms, {R"({"uuid":"","name":"a","state":"running"})"}),
              "vms: '' has an empty name");
    EXPECT_EQ(reason(vms, {R"({"uuid":"a","uuid":"b","name":"a","state":"running"})"}),
              "vms: 'uuid' is there twice");
    EXPECT_EQ(reason(vms, {R"({"uuid":"a","state":"running"})"}), "vms: 'name' is missing");
    EXPECT_EQ(reason(vms, {R"({"uuid":"a","\u0068ost":"b","name":"a","state":"running"})"}),
              "vms: 'host' is the fleet's member");
    EXPECT_EQ(reason(pfs, {R"({"info":{"pci":"x"}})"}).substr(0, 16), "pfs: info/'pci' ");
    EXPECT_EQ(reason(pfs, {pf_text(1, {vf_text(2, 0)})}),
              "vfs: 0000:01:00.0 lists a VF of 0000:02:00.0");
    EXPECT_EQ(reason(vms, {vm_text("a"), vm_text("b")}, {.items_max = 1}),
              "vms: there are too many");
    EXPECT_EQ(reason(vms, {vm_text("a")}, {.item_bytes_max = 20}), "vms: an item is too long");
    EXPECT_EQ(reason(vms, {vm_text("a"), vm_text("b")}, {.part_bytes_max = 100}),
              "vms: all of them are too long");
    EXPECT_EQ(reason(pfs, {pf_text(1, {vf_text(1, 0), vf_text(1, 1)})}, {.items_max = 1}),
              "vfs: there are too many");
}

TEST(HostDocuments, AWordOfANewerHostIsNoGoodState) {
    HostDocuments documents;
    EXPECT_TRUE(put_item(documents, Collection::vfs, "0000:01:00.0/0", vf_text(1, 0, "parked"),
                         limits, at(1)));
    EXPECT_EQ(documents.vfs->items.at(0).facts.state, std::nullopt);
}

TEST(HostDocuments, SingleItemsAreBoundedToo) {
    HostDocuments documents;
    DocumentLimits const within{.items_max = 1};
    EXPECT_TRUE(put_item(documents, Collection::vms, "uuid-a", vm_text("a"), within, at(1)));
    EXPECT_TRUE(put_item(documents, Collection::vms, "uuid-a", vm_text("a"), within, at(2)));
    EXPECT_FALSE(put_item(documents, Collection::vms, "uuid-b", vm_text("b"), within, at(3)));
    EXPECT_EQ(documents.vms->items.size(), 1U);
    EXPECT_EQ(documents.vms->incomplete->reason, "vms: there is too much");
}

TEST(HostDocuments, PagesAreTakenApart) {
    auto const page =
        read_list_page(R"( {"items": [ {"a": 1}, 2 ], "next": "a00", "x": 1} )", limits);
    ASSERT_TRUE(page);
    EXPECT_EQ(page->items, (std::vector<std::string>{R"({"a":1})", "2"}));
    EXPECT_EQ(page->next, "a00");
    EXPECT_EQ(read_list_page(R"({"items":[],"next":null})", limits)->next, std::nullopt);
    EXPECT_FALSE(read_list_page(R"({"items":{}})", limits));
    EXPECT_FALSE(read_list_page(R"({"items":[],"next":7})", limits));
    EXPECT_FALSE(read_list_page("<html>", limits));
    EXPECT_FALSE(read_list_page(R"({"items":[1,2]})", {.items_max = 1}));
}

TEST(HostDocuments, IdentitiesHaveTheirGeneration) {
    HostDocuments documents;
    EXPECT_TRUE(put_item(documents, Collection::identities, "", R"({"macs":[],"generation":17})",
                         limits, at(1)));
    EXPECT_EQ(documents.identities->generation, 17U);
    EXPECT_FALSE(
        put_item(documents, Collection::identities, "", R"({"generation":-1})", limits, at(2)));
    EXPECT_TRUE(documents.identities->incomplete);
    EXPECT_EQ(documents.identities->text, "");
}

}  // namespace
}  // namespace vfmgr::fleet
