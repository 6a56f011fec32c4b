# SPDX-License-Identifier: Apache-2.0
# fish completion of vfctl. The program knows what may follow: vfctl __complete WORD...

function __vfctl_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l whole (string unescape -- $word)
    and set word $whole
    set -l reply ($words[1] __complete $words[2..] $word 2>/dev/null)
    if test "$reply[1]" = :files
        set -l before (string match --regex -- '^--[^=]*=' $word)
        for path in (__fish_complete_path (string replace -- "$before" '' $word))
            echo "$before$path"
        end
    else if set --query reply[1]
        printf '%s\n' $reply
    end
end
complete --command vfctl --no-files --arguments '(__vfctl_complete)'
