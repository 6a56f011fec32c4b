// SPDX-License-Identifier: Apache-2.0
// How vfctl ends. vf-guest ends in the same way for a Problem. Values; any thread.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace vfmgr {

enum class Exit {
    done,
    failed,
    usage,
    not_found,
    refused,
    not_permitted,
    unreachable,
    timed_out,
    differs,
    interrupted = 130  // 128 + SIGINT, as in shells
};

// The list of --help and of the man page.
inline constexpr std::array<std::pair<Exit, std::string_view>, 10> exit_meanings = {
    {{Exit::done, "done"},
     {Exit::failed, "failed"},
     {Exit::usage, "wrong usage"},
     {Exit::not_found, "not found"},
     {Exit::refused, "refused: in use, or in conflict with something else"},
     {Exit::not_permitted, "not permitted"},
     {Exit::unreachable, "the daemon does not answer, or can't serve the request now"},
     {Exit::timed_out, "timed out, or still running"},
     {Exit::differs, "diff found differences"},
     {Exit::interrupted, "interrupted; an operation continues"}}};

}  // namespace vfmgr
