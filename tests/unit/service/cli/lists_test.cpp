// SPDX-License-Identifier: Apache-2.0
// vfctl shows whole lists, however many pages they have.
#include <gmock/gmock.h>

#include <algorithm>

#include "api/types/daemon.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

nlohmann::json page_of(std::vector<std::string> const& ids, nlohmann::json next) {
    std::vector<Attachment> attachments;
    for (auto const& id : ids) attachments.push_back(test::attachment(id, "vm of " + id));
    return {{"items", attachments}, {"next", std::move(next)}};
}

TEST(Lists, AreFollowedToTheirEnd) {
    Api api;
    auto first = page_of({"0000000a", "0000000b"}, "2");
    first["items"][0]["from the future"] = 1;
    api.on("GET /v1/attachments", 200, first);
    api.on("GET /v1/attachments cursor=2", 200, page_of({"0000000c"}, "3"));
    api.on("GET /v1/attachments cursor=3", 200, page_of({"0000000d"}, "4"));
    api.on("GET /v1/attachments cursor=4", 200, page_of({}, nullptr));  // it went meanwhile
    EXPECT_EQ(vfctl(api, {"attachment", "list", "-o", "name"}).out,
              "0000000a\n0000000b\n0000000c\n0000000d\n");
    auto const whole = nlohmann::json::parse(vfctl(api, {"-j", "attachment", "list"}).out);
    EXPECT_EQ(whole["items"].size(), 4U);
    EXPECT_EQ(whole["items"][0]["from the future"], 1);
    EXPECT_TRUE(whole["next"].is_null());
    // Every page counts: the VM is named by the last one.
    api.on("GET /v1/attachments/0000000d", 200,
           nlohmann::json(test::attachment("0000000d", "vm of 0000000d")));
    EXPECT_EQ(vfctl(api, {"attachment", "show", "vm of 0000000d"}).code, 0);
}

TEST(Lists, AreNotFollowedForEver) {
    Api api;
    api.on("GET /v1/attachments", 200, page_of({"0000000a"}, "2"));
    api.on("GET /v1/attachments cursor=2", 200, page_of({"0000000b"}, "2"));
    auto const round = vfctl(api, {"attachment", "list"});
    EXPECT_EQ(round.code, 1);
    EXPECT_THAT(round.err, HasSubstr("never ends"));
    api.on("GET /v1/tokens", 200, page_of({}, "2"));
    api.on("GET /v1/tokens cursor=2", 200, page_of({}, "3"));
    EXPECT_EQ(vfctl(api, {"token", "list"}).code, 1);
    api.on("GET /v1/vms", 200, {{"items", 5}});
    EXPECT_THAT(vfctl(api, {"vm", "list"}).err, HasSubstr("is not a list"));
}

TEST(Lists, OfTheAuditMayBeTheLatestOnly) {
    Api api;
    auto const page = [](int entries, nlohmann::json next) {
        return nlohmann::json{{"items", std::vector<AuditEntry>(static_cast<std::size_t>(entries))},
                              {"next", std::move(next)}};
    };
    api.on("GET /v1/audit", 200, page(500, "2"));
    api.on("GET /v1/audit cursor=2 limit=200", 200, page(200, "3"));
    auto const shown = vfctl(api, {"-o", "csv", "--no-headers", "audit", "--limit", "700"});
    EXPECT_EQ(std::ranges::count(shown.out, '\n'), 700) << shown.err;
    api.on("GET /v1/audit cursor=2", 200, page(1, nullptr));
    auto const all = vfctl(api, {"-o", "csv", "--no-headers", "audit"});
    EXPECT_EQ(std::ranges::count(all.out, '\n'), 501) << all.err;
}

TEST(Lists, OfVfsHaveTheNetdevsOfTheirPfs) {
    Api api;
    VfView vf;
    vf.pf = PciAddress::parse("0000:01:00.0").value();
    vf.vf.index = 3;
    nlohmann::json const vfs = test::list<VfView>({vf});
    api.on("GET /v1/pfs", 200, test::list<PfView>({test::pf("0000:01:00.0", "ens1")}));
    api.on("GET /v1/vfs", 200, vfs);
    api.on("GET /v1/pfs/0000:01:00.0/vfs", 200, vfs);
    EXPECT_EQ(vfctl(api, {"-j", "vf", "list"}).out, vfs.dump() + "\n");
    EXPECT_EQ(vfctl(api, {"-j", "vf", "list", "ens1"}).out, vfs.dump() + "\n");
    EXPECT_THAT(vfctl(api, {"vf", "list"}).out, HasSubstr("0000:01:00.0  ens1    3"));
    EXPECT_EQ(vfctl(api, {"vf", "list", "-o", "name"}).out, "0000:01:00.0/3\n");
}

}  // namespace
}  // namespace vfmgr
