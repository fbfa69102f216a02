from decoder.gaussians.adaptation.job import FmllrApplyResult as FmllrApplyResult
from decoder.gaussians.adaptation.job import FmllrTrainResult as FmllrTrainResult
from decoder.gaussians.adaptation.job import apply_fmllr as apply_fmllr
from decoder.gaussians.adaptation.job import train_fmllr as train_fmllr
from decoder.gaussians.adaptation.options import AdaptationOptions as AdaptationOptions
from decoder.gaussians.adaptation.options import FmllrApplyOptions as FmllrApplyOptions
from decoder.gaussians.adaptation.options import FmllrTrainOptions as FmllrTrainOptions
from decoder.gaussians.adaptation.options import SpeakerOptions as SpeakerOptions
