"""HTK's models, lists of models, trees and scripts of HHEd."""

from decoder.graph.phone_models import distil
from readers.errors import ArgonautError
from readers.htk.edit_script import read_edit_script, write_edit_script
from readers.htk.hmm_list import read_hmm_list, write_hmm_list
from readers.htk.mmf import read_mmf
from readers.htk.mmf_writer import write_mmf
from readers.htk.trees import read_trees, write_trees
from tests.fuzz.format import Format, text

MMFS = (
    """~o
<STREAMINFO> 1 2
<VecSize> 2<NULLD><MFCC_0><DIAGC>
~v "varFloor1"
<Variance> 2
 0.01 0.02
~u 'mean one' <MEAN> 2 1.0 -2e-1
~m "mix"
<Mean> 2
 3 4
<Variance> 2
 1 1
<GCONST> 3.67
~p "pool" <STREAM> 1 <NUMMIXES> 2 <MIXTURE> 1 0.4 ~m "mix" <MIXTURE> 2 0.6 <MEAN> 2 0 0 <VARIANCE> 2 1 1
~s "sil_s3"
<NUMMIXES> 2
<MIXTURE> 1 2.5e-1
~u "mean one"
~v "varFloor1"
<MIXTURE> 2 0.75
~m "mix"
~t "T_sp"
<TRANSP> 3
 0 0.3 0.7
 0 0.9 0.1
 0 0 0
~h "sil"
<BEGINHMM>
<NUMSTATES> 4
<STATE> 2 ~p "pool"
<STATE> 3
~s "sil_s3"
<TRANSP> 4
 0 1 0 0
 0 0.5 0.3 0.2
 0 0 0.5 0.5
 0 0 0 0
<ENDHMM>
~h "sp"
<BeginHMM>
<NumStates> 3
<State> 2
~s "sil_s3"
~t "T_sp"
<EndHMM>
""",
    '~o <VECSIZE> 1 <FBANK_D>\n~h "a"\n<BEGINHMM>\n<NUMSTATES> 3\n<STATE> 2\n<MEAN> 1\n 0\n<VARIANCE> 1\n 1\n'
    "<TRANSP> 3\n 0 1 0\n 0 0.5 0.5\n 0 0 0\n<ENDHMM>\n",
)
TREES = """ QS  'L_Nasal' { "m-*","n-*" }
 QS "R_Stop" { *+p , *+t }

aa[2]
{
   0            'L_Nasal'   -1     "aa_s2_1"
  -1             'R_Stop'  "aa_s2_2"   -2
  -2             'L_Nasal'  "aa_s2_3"   "aa_s2_4"
}

aa[3]
   "aa_s3_1"
"""
SCRIPT = """# clustering
RO 100 "stats"
QS "L_Nasal" { "m-*","n-*" }
QS 'R_Stop' { *+p , *+t }
TB 350 "aa_s2" {("aa","*-aa+*","aa+*","*-aa").state[2]}
TB 350 "aa_s3" {("aa","*-aa+*","aa+*","*-aa").state[3]}
AU "full"
CO "tied"
ST "trees"
"""
LISTS = ("a\nb\nm-a+b a\nsil\n", "sil\nx-y+z x-y+w\nx-y+w\n")


def model_definitions(path) -> None:
    models = read_mmf(path)
    write_mmf(path.with_suffix(".out"), models)
    read_mmf(path.with_suffix(".out"))
    distil(models)


def trees(path) -> None:
    found = read_trees(path)
    for model in ("m-aa+p", "aa", "k-aa+z", "x"):
        try:
            found.synthesise(model)
        except ArgonautError:
            continue
    write_trees(path.with_suffix(".out"), found)
    read_trees(path.with_suffix(".out"))


def script(path) -> None:
    write_edit_script(path.with_suffix(".out"), read_edit_script(path))
    read_edit_script(path.with_suffix(".out"))


def hmm_list(path) -> None:
    write_hmm_list(path.with_suffix(".out"), read_hmm_list(path))
    read_hmm_list(path.with_suffix(".out"))


FORMATS = (
    Format("mmf", text(*MMFS), model_definitions),
    Format("hmm list", text(*LISTS), hmm_list),
    Format("decision trees", text(TREES), trees),
    Format("hhed script", text(SCRIPT), script),
)
