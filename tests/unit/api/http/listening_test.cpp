// SPDX-License-Identifier: Apache-2.0
#include "api/http/listening.hpp"

#include <grp.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

struct stat status_of(std::string const& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
}

TEST(Listening, TheSocketHasModeAndGroupWhateverTheUmask) {
    for (mode_t const mask : {0000U, 0022U, 0077U}) {
        Folder const folder;
        auto const path = folder.file("socket");
        auto const* const own = ::getgrgid(::getegid());
        ASSERT_NE(own, nullptr);
        auto const before = ::umask(mask);
        auto const socket = open_listening(UnixListen{path, own->gr_name, 0660});
        EXPECT_EQ(::umask(before), mask) << "the umask of the process was changed";
        ASSERT_TRUE(socket) << socket.error().detail;
        EXPECT_EQ(status_of(path).st_mode & 07777, 0660u);
        EXPECT_EQ(status_of(path).st_gid, ::getegid());
    }
}

// listen_at(UnixListen) relies on this: the file that bind() makes has no wider mode than the
// socket had before, so its mode is never wider, not even for a moment.
TEST(Listening, TheKernelMakesTheFileWithTheSocketsOwnMode) {
    Folder const folder;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    folder.file("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    FileDescriptor const fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::fchmod(fd.get(), 0600), 0);
    auto const before = ::umask(0);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::umask(before);
    EXPECT_EQ(status_of(address.sun_path).st_mode & 07777, 0600u);
}

TEST(Listening, AStaleSocketIsReplacedAndALiveOneIsNot) {
    Folder const folder;
    auto const path = folder.file("socket");
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        FileDescriptor const dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    auto const socket = open_listening(UnixListen{path, {}, 0600});
    ASSERT_TRUE(socket) << socket.error().detail;
    auto const second = open_listening(UnixListen{path, {}, 0600});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().problem, Problem::conflict);
    EXPECT_NE(second.error().detail.find("another process listens"), std::string::npos);
}

TEST(Listening, SomebodyElsesFileStays) {
    Folder const folder;
    auto const path = folder.file("file");
    std::ofstream(path) << "precious";
    auto const socket = open_listening(UnixListen{path, {}, 0600});
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().problem, Problem::conflict);
    EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST(Listening, TheSocketFileGoesWithTheServerButNotASuccessors) {
    Folder const folder;
    auto const path = folder.file("socket");
    {
        auto const socket = open_listening(UnixListen{path, {}, 0600});
        ASSERT_TRUE(socket);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    {
        auto const socket = open_listening(UnixListen{path, {}, 0600});
        ASSERT_TRUE(socket);
        std::filesystem::remove(path);
        std::ofstream(path) << "another's";
    }
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Listening, BadPlacesAreNamed) {
    Folder const folder;
    auto const nowhere = open_listening(UnixListen{folder.file("no/socket"), {}, 0600});
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().detail.find("no/socket"), std::string::npos);
    EXPECT_EQ(nowhere.error().causes.front().code, "ENOENT");
    EXPECT_FALSE(open_listening(UnixListen{std::string(200, 'a'), {}, 0600}));
    auto const group = open_listening(UnixListen{folder.file("a"), "no-such-group-here", 0600});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().problem, Problem::not_found);
    EXPECT_FALSE(open_listening(TlsListen{.address = "localhost", .port = 0}));
    EXPECT_FALSE(open_listening(TlsListen{.address = "192.0.2.1", .port = 0}))
        << "not an address of this host";
}

TEST(Listening, AnInheritedUnixSocketServes) {
    Folder const folder;
    auto const path = folder.file("socket");
    auto socket = open_listening(UnixListen{path, {}, 0600});
    ASSERT_TRUE(socket);
    Server server{Limits{}};
    ASSERT_TRUE(server.listen(InheritedListen{socket->fd.release()}, echo));
    server.start();
    auto const response = Client(UnixTarget{path}).send(get("/inherited"), 20s);
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->body, "GET /inherited");
    server.stop();
    EXPECT_TRUE(std::filesystem::exists(path)) << "the file is systemd's";
}

TEST(Listening, AnInheritedTcpSocketOrNoSocketIsRefused) {
    FileDescriptor const tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::listen(tcp.get(), 1), 0);
    auto const plain = open_listening(InheritedListen{tcp.get()});
    ASSERT_FALSE(plain);
    EXPECT_NE(plain.error().detail.find("without TLS"), std::string::npos);
    FileDescriptor const unconnected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_FALSE(open_listening(InheritedListen{unconnected.get()}));
    EXPECT_FALSE(open_listening(InheritedListen{-1}));
}

TEST(Listening, StopBeforeStartClosesWhatWasOpened) {
    Folder const folder;
    auto const path = folder.file("socket");
    {
        Server server{Limits{}};
        ASSERT_TRUE(server.listen(UnixListen{path, {}, 0600}, echo));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace vfmgr::http
