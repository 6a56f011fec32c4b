// SPDX-License-Identifier: Apache-2.0
// A PF that is not at its address, as vfctl prints it.
#include <gmock/gmock.h>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

nlohmann::json const gone = [] {
    auto view = test::pf("0000:01:00.0", "");
    view.standing = {Standing::gone, "PF 0000:01:00.0 is not on this host",
                     "vfctl pf gone 0000:01:00.0"};
    return view;
}();

nlohmann::json ended(OperationKind kind) {
    auto operation = test::operation(OperationState::succeeded);
    operation.kind = kind;
    return operation;
}

TEST(PfGone, IsShownWithItsStandingAndTheRemedy) {
    Api api;
    api.on("GET /v1/pfs/0000:01:00.0", 200, gone);
    auto const page = vfctl(api, {"pf", "show", "01:00.0"});
    EXPECT_EQ(page.code, 0) << page.err;
    EXPECT_THAT(page.out, HasSubstr("gone: PF 0000:01:00.0 is not on this host: "
                                    "vfctl pf gone 0000:01:00.0"));
    api.on("GET /v1/pfs", 200, {{"items", {gone}}, {"next", nullptr}});
    EXPECT_THAT(vfctl(api, {"pf", "list"}).out, HasSubstr("STANDING"));
}

TEST(PfGone, EndsAndIsConfirmedByCommands) {
    for (std::string const verb : {"gone", "confirm-gone"}) {
        Api api;
        auto const path = "POST /v1/pfs/0000:01:00.0/" + verb;
        api.on(path, 202, ended(OperationKind::end_gone_pf));
        api.on("GET /v1/operations/op1 wait=60", 200, ended(OperationKind::end_gone_pf));
        auto const done = vfctl(api, {"pf", verb, "0000:01:00.0"});
        EXPECT_EQ(done.code, 0) << done.err;
        EXPECT_THAT(done.err, HasSubstr("0000:01:00.0"));
        auto const named = vfctl(api, {"pf", verb, "ens1"});
        EXPECT_EQ(named.code, 2) << "a PF that is not there has no name";
        EXPECT_THAT(named.err, HasSubstr("'ens1' is not a PCI address"));
    }
}

TEST(PfRekey, SaysFromWhereAndWhereTo) {
    Api api;
    api.on("POST /v1/pfs/0000:01:00.0/rekey", 202, ended(OperationKind::rekey_pf));
    api.on("GET /v1/operations/op1 wait=60", 200, ended(OperationKind::rekey_pf));
    auto const done = vfctl(api, {"pf", "rekey", "01:00.0", "0000:02:00.0"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("the stored state of 0000:01:00.0 has moved to 0000:02:00.0"));
    EXPECT_NE(vfctl(api, {"pf", "rekey", "01:00.0"}).code, 0);
}

}  // namespace
}  // namespace vfmgr
