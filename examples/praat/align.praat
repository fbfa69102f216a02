# Align the selected Sound with the transcript in the selected TextGrid, by `argonaut align`.
#
# Select a Sound and a TextGrid whose intervals have what was said, one tier for each speaker, and run this script
# (Praat > Open Praat script...; Run).  The result is a TextGrid with the tiers of the selected one and `words` and
# `phones`.  Praat > Add to dynamic menu... in the script's File menu makes it a button.
#
# Model: a bundle or the name of an installed one.  Dictionary: a file, or empty for the bundle's own.  Tiers: names of
# those with utterances, separated by commas, or empty for all that can be some.  Command: argonaut, with its folder if
# Praat does not find it.

form Align with Argonaut
    sentence Model en
    sentence Dictionary
    sentence Tiers
    sentence Command argonaut
endform

sound = selected ("Sound")
grid = selected ("TextGrid")
name$ = selected$ ("TextGrid")
selectObject: sound
start = Get start time
rate = Get sampling frequency

# A folder of this user, whose files the next run replaces.
folder$ = preferencesDirectory$ + "/argonaut"
createFolder: folder$
createFolder: folder$ + "/sound"
recording$ = folder$ + "/sound/recording"
result$ = folder$ + "/result/recording.TextGrid"
deleteFile: result$
deleteFile: folder$ + "/result/.results/recording.json"
deleteFile: folder$ + "/result/report"

selectObject: sound
mono = Convert to mono
Save as WAV file: recording$ + ".wav"
selectObject: grid
shifted = Copy: "shifted"
Shift times to: "start time", 0
Save as text file: recording$ + ".TextGrid"
removeObject: mono, shifted

# The programs are run without a shell, so that names may have blanks and quotes.  Status 1 says that some utterances
# could not be aligned, which the report names.
if dictionary$ = "" and tiers$ = ""
    nocheck runSubprocess: command$, "align", recording$ + ".wav", model$, folder$ + "/result"
elsif tiers$ = ""
    nocheck runSubprocess: command$, "align", recording$ + ".wav", dictionary$, model$, folder$ + "/result"
elsif dictionary$ = ""
    nocheck runSubprocess: command$, "align", recording$ + ".wav", model$, folder$ + "/result", "--tiers", tiers$
else
    nocheck runSubprocess: command$, "align", recording$ + ".wav", dictionary$, model$, folder$ + "/result", "--tiers", tiers$
endif

if not fileReadable (result$)
    report$ = "To see why, run in a terminal:" + newline$ + command$ + " align """ + recording$ + ".wav"" " + dictionary$
    ... + " " + model$ + " """ + folder$ + "/result"""
    if fileReadable (folder$ + "/result/report")
        report$ = readFile$ (folder$ + "/result/report")
    endif
    selectObject: sound, grid
    exitScript: "Argonaut has aligned nothing.", newline$, report$
endif

aligned = Read from file: result$
Shift times to: "start time", start
selectObject: grid, aligned
merged = Merge
Rename: name$ + "_aligned"
removeObject: aligned
selectObject: merged
