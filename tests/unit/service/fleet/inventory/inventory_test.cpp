// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/inventory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;

HostDocuments with_vms(std::vector<std::string> const& names) {
    HostDocuments documents;
    std::vector<std::string> items;
    for (auto const& name : names) items.push_back(vm_text(name));
    put_list(documents, Collection::vms, items, {}, at(1));
    return documents;
}

TEST(Inventory, ShowsNothingBeforeItIsPublished) {
    Inventory inventory;
    inventory.put_host(host("h2", 2), at(1));
    inventory.put_host(host("h1", 1), at(1));
    EXPECT_TRUE(inventory.snapshot()->hosts.empty());
    inventory.publish();
    auto const first = inventory.snapshot();
    ASSERT_EQ(first->hosts.size(), 2U);
    EXPECT_EQ(first->hosts[0]->host.name, "h1");
    inventory.put_documents("h1", with_vms({"a"}));
    inventory.put_stale("h2", Stale{at(5), StaleWhy::unreachable});
    inventory.remove_host("h2");
    EXPECT_TRUE(first->find("h1")->documents.vms->items.empty());
    inventory.publish();
    EXPECT_TRUE(first->find("h1")->documents.vms->items.empty()) << "a snapshot never changes";
    EXPECT_EQ(inventory.snapshot()->find("h1")->documents.vms->items.size(), 1U);
    EXPECT_EQ(inventory.snapshot()->find("h2"), nullptr);
    EXPECT_EQ(inventory.snapshot()->find("h0"), nullptr);
}

TEST(Inventory, AnUnreachableHostKeepsItsLastPart) {
    Inventory inventory;
    inventory.put_host(host("h1", 1), at(1));
    inventory.put_documents("h1", with_vms({"a", "b"}));
    inventory.put_stale("h1", Stale{at(9), StaleWhy::unreachable});
    inventory.put_host(host("h1", 1, "r1"), at(10));
    inventory.publish();
    auto const* const part = inventory.snapshot()->find("h1");
    EXPECT_EQ(part->documents.vms->items.size(), 2U);
    EXPECT_EQ(part->stale->since, at(9));
    EXPECT_EQ(part->host.rack, "r1");
    EXPECT_EQ(part->known_since, at(1));
}

TEST(Inventory, APublicationWithoutAChangeIsNone) {
    Inventory inventory;
    inventory.put_host(host("h1", 1), at(1));
    inventory.publish();
    auto const before = inventory.snapshot();
    inventory.put_host(host("h1", 1), at(2));
    inventory.put_stale("h1", std::nullopt);
    inventory.put_documents("nobody", {});
    inventory.publish();
    EXPECT_EQ(inventory.snapshot(), before);
}

// Each snapshot has as many VMs on one host as on the other: both changed before one publication.
TEST(Inventory, ReadersSeeWholePublications) {
    Inventory inventory;
    inventory.put_host(host("h1", 1), at(1));
    inventory.put_host(host("h2", 2), at(1));
    inventory.publish();
    std::atomic<bool> done = false;
    std::atomic<int> torn = 0;
    std::thread reader([&] {
        while (!done) {
            auto const view = inventory.snapshot();
            if (view->find("h1")->documents.vms->items.size() !=
                view->find("h2")->documents.vms->items.size())
                ++torn;
        }
    });
    for (int i = 0; i < 2000; ++i) {
        auto const documents = i % 2 == 0 ? with_vms({"a"}) : with_vms({"a", "b", "c"});
        inventory.put_documents("h1", documents);
        inventory.put_documents("h2", documents);
        inventory.publish();
    }
    done = true;
    reader.join();
    EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace vfmgr::fleet
