// SPDX-License-Identifier: Apache-2.0
// What was read from a machine, unchanged: bytes of files, targets of links, names in folders,
// netlink replies, output of commands. Everything that a check knows comes from here, so saved
// facts (a bundle, bundle.hpp) give the same verdicts elsewhere.
// A value; any thread.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "api/types/check.hpp"

namespace vfmgr::checks {

// Why something is not known: the errno of the read, or 0 if it was never tried.
struct Unknown {
    std::string source;
    int error = 0;
    [[nodiscard]] bool absent() const;  // ENOENT: known not to exist
    bool operator==(Unknown const&) const = default;
};
// "/dev/kmsg: EPERM", "/proc/cpuinfo was not collected".
[[nodiscard]] std::string to_string(Unknown const& unknown);
template <class T>
using Known = tl::expected<T, Unknown>;
using Names = std::span<std::string const>;

// Bytes, or an errno instead.
struct Fact {
    std::string bytes;
    int error = 0;
    bool operator==(Fact const&) const = default;
};

struct FolderFact {
    std::vector<std::string> names;  // sorted
    int error = 0;
    bool operator==(FolderFact const&) const = default;
};

struct CommandFact {
    std::string out, err;
    int exit_status = 0;  // 128 + signal if a signal ended it
    int error = 0;        // why it could not run: ENOENT; or ETIMEDOUT: it was killed
    bool operator==(CommandFact const&) const = default;
};

// Messages of a reply, each without its nlmsghdr; or the errno.
struct NetlinkFact {
    std::vector<std::string> payloads;
    int error = 0;
    bool operator==(NetlinkFact const&) const = default;
};

// Where facts come from, which decides what they prove.
enum class Provenance {
    live,         // this machine
    lab,          // collected in the project's emulated host
    recorded,     // collected on a real machine by other tools
    transcribed,  // by hand from a published source
    synthetic,    // made up
};

struct Facts {
    CheckedMachine machine = CheckedMachine::host;
    Provenance provenance = Provenance::live;
    std::string source;  // origin of transcribed and recorded facts
    Time collected_at{};

    // Patterns that were looked up, as in sources.hpp: what matches and is not below was absent.
    // "*" alone is everything.
    std::set<std::string, std::less<>> patterns;
    std::map<std::string, Fact, std::less<>> files;
    std::map<std::string, Fact, std::less<>> links;
    std::map<std::string, FolderFact, std::less<>> folders;
    std::map<std::string, NetlinkFact, std::less<>> netlink;   // by request: "RTM_GETADDR"
    std::map<std::string, CommandFact, std::less<>> commands;  // by command line
    bool operator==(Facts const&) const = default;

    // A file's bytes without the final newline.
    [[nodiscard]] Known<std::string_view> text(std::string_view path) const;
    // A link's target.
    [[nodiscard]] Known<std::string_view> target(std::string_view path) const;
    // Names in a folder; a missing folder has none.
    [[nodiscard]] Known<Names> names(std::string_view path) const;
    [[nodiscard]] Known<CommandFact const*> command(std::string_view line) const;
    [[nodiscard]] Known<Names> answers(std::string_view request) const;
    // True if everything that this pattern matches was looked for.
    [[nodiscard]] bool looked_up(std::string_view pattern) const;

  private:
    template <class Map>
    [[nodiscard]] Known<typename Map::mapped_type const*> found(Map const& map,
                                                                std::string_view name) const;
    // Why `name` is in none of the maps: absent if a pattern covers it.
    [[nodiscard]] Unknown missing(std::string_view name) const;
};

// Matches a pattern as in sources.hpp: "*", "?" and "[…]" within one part of the path.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);

}  // namespace vfmgr::checks
