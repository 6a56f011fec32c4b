// SPDX-License-Identifier: Apache-2.0
// vfctl network against an API that answers from a list.
#include <gmock/gmock.h>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

nlohmann::json const ens1 = test::pf("0000:01:00.0", "ens1");

nlohmann::json const train{{"name", "train"},
                           {"prefix", "10.1.0.0/24"},
                           {"pfs", {{{"pf", "0000:01:00.0"}, {"host_address", "10.1.0.1"}}}}};

TEST(Vfctl, NetworkSetMakesANetworkThatIsNotThere) {
    Api api;
    api.on("GET /v1/networks/train", 404,
           {{"code", "not_found"}, {"detail", "there is no network train"}});
    api.on("GET /v1/pfs", 200, {{"items", {ens1}}, {"next", nullptr}});
    api.on("PUT /v1/networks/train", 200, train);
    auto const ran =
        vfctl(api, {"network", "set", "train", "--prefix", "10.1.0.0/24", "--pf", "ens1=10.1.0.1"});
    auto const put = api.asked("PUT /v1/networks/train");
    EXPECT_EQ(put.headers.at("if-match"), "\"0\"") << ran.err;
    auto const sent = nlohmann::json::parse(put.body);
    EXPECT_EQ(sent["prefix"], "10.1.0.0/24");
    EXPECT_EQ(sent["pfs"], train["pfs"]);
    auto const lacking = vfctl(api, {"network", "set", "train", "--vlan", "5"});
    EXPECT_EQ(lacking.code, 2);
    EXPECT_THAT(lacking.err, HasSubstr("the new network train needs a prefix"));
}

TEST(Vfctl, NetworkSetChangesWhatIsNamed) {
    Api api;
    api.on("GET /v1/networks/train", 200, train, {{"ETag", "\"7\""}});
    api.on("PUT /v1/networks/train", 200, train);
    auto const ran = vfctl(api, {"network", "set", "train", "--vlan", "5"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("10.1.0.0/24"));
    auto const put = api.asked("PUT /v1/networks/train");
    EXPECT_EQ(put.headers.at("if-match"), "\"7\"");
    auto const sent = nlohmann::json::parse(put.body);
    EXPECT_EQ(sent["vlan"], 5);
    EXPECT_EQ(sent["pfs"], train["pfs"]);
    EXPECT_EQ(vfctl(api, {"network", "set", "train", "--pf", "10.1.0.1"}).code, 2);
}

}  // namespace
}  // namespace vfmgr
