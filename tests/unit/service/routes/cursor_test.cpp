// SPDX-License-Identifier: Apache-2.0
// Cursors: one of this list and these filters is taken, any other is refused with a remedy.
#include "service/routes/cursor.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;

constexpr auto list = "/v1/vfs?state=free";

void expect_refused(std::string const& cursor, std::string const& of, char const* why) {
    auto const key = key_in(cursor, of);
    ASSERT_FALSE(key) << cursor;
    EXPECT_EQ(key.error().problem, Problem::invalid_request);
    EXPECT_EQ(http_status(key.error()), 400);
    EXPECT_THAT(key.error().detail, HasSubstr(why)) << cursor;
    EXPECT_THAT(key.error().remedy, HasSubstr("leave out cursor"));
}

TEST(Cursor, HasItsKey) {
    for (std::string const key : {"0000:01:00.0/12", "", "VM 1 \xff\n/", "ä"})
        EXPECT_EQ(key_in(make_cursor(list, key), list), key);
}

TEST(Cursor, IsOfOneList) {
    auto const cursor = make_cursor(list, "0000:01:00.0/12");
    for (auto const* other : {"/v1/vfs", "/v1/vfs?state=in_use", "/v1/pfs?state=free", ""})
        expect_refused(cursor, other, "is of another list than");
}

TEST(Cursor, IsSentAsItIs) {
    auto const cursor = make_cursor(list, "0000:01:00.0/12");
    for (std::size_t at = 1; at < cursor.size(); ++at) {
        auto changed = cursor;
        changed[at] = changed[at] == '0' ? '1' : '0';
        expect_refused(changed, list, "was changed");
    }
    for (auto const cut : {std::size_t(1), std::size_t(17), cursor.size() - 2})
        EXPECT_FALSE(key_in(cursor.substr(0, cut), list)) << cut;
    expect_refused(cursor + "30", list, "was changed");
    for (auto const* nonsense :
         {"", "a", "2", "0000:01:00.0/12", "../../etc", "A0123456789abcdef0"})
        expect_refused(nonsense, list, "is not a cursor of this API");
    expect_refused(cursor + "3", list, "is not a cursor");
    expect_refused("a" + std::string(1'000'000, '0'), list, "is not a cursor");
}

TEST(Cursor, OfAnotherFormIsSaidToBe) {
    auto cursor = make_cursor(list, "0000:01:00.0/12");
    cursor[0] = 'b';
    expect_refused(cursor, list, "is of another version of vfmgr");
}

template <class Key>
void expect_survives(Key const& key) {
    EXPECT_EQ(parse_key<Key>(key_text(key)), key) << key_text(key);
}

TEST(Cursor, KeysSurvive) {
    expect_survives(std::string("rxe0"));
    expect_survives(PciAddress{0x10000, 0x3b, 0x1f, 7});
    expect_survives(VfId{{0, 1, 0, 0}, 65535});
    expect_survives(RowPlace{1769860800123, 42});
    expect_survives(RowPlace{});
    expect_survives(CreatedAndId{1769860800123, "a/b"});
}

TEST(Cursor, TextsThatAreNoKeysAreNone) {
    for (auto const* text :
         {"", "0000:01:00.0", "0000:01:00.0/", "0000:01:00.0/65536", "/5", "x/5"})
        EXPECT_FALSE(parse_key<VfId>(text)) << text;
    for (auto const* text : {"", "5", "5/", "/5", "-5/1", "5/-1", "5/9223372036854775808"})
        EXPECT_FALSE(parse_key<RowPlace>(text)) << text;
    EXPECT_FALSE(parse_key<PciAddress>("enp1s0"));
    EXPECT_FALSE(parse_key<CreatedAndId>("id"));
}

}  // namespace
}  // namespace vfmgr
