// SPDX-License-Identifier: Apache-2.0
#include "service/cli/commands.hpp"

int main(int argc, char** argv) {
    return vfmgr::run_vfctl({argv + 1, argv + argc});
}
